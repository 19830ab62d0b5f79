"""The programs that `hot_path.py` runs, a framework a file."""
