"""The processes of `throughput.py`: an endpoint of fixed latency, and those who have it judge, one a file."""
