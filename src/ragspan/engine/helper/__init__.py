"""The helper: a process of the engine's own that computes, so that the application's interpreter is free for requests.

It is a plain Python process that imports ragspan and nothing of the application's, and gets copies of the metrics whose judges compute.
In the application `process` starts and ends it, and `client` asks it; `serving` is its program, and what they say to each other.
"""
