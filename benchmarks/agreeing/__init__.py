"""The parts of `agreement.py`: reading human judgements, having answers judged, and comparing the two."""
