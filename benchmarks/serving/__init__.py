"""The processes of `tail_latency.py` and `soak.py`: an application, its load, and where its spans and judges are."""
