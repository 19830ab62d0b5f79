"""What `capture.py` runs: the integrations' own tests as cases, and how each peer's evaluation reads a request."""
