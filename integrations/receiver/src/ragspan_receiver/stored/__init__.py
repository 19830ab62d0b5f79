"""Traces that a tracing tool has stored, read as answers, for `ragspan evaluate --from` and `ragspan labels pull`."""
