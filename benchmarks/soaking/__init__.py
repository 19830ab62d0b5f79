"""What `soak.py` is made of: traffic, faults, and the signs of life that are watched."""
