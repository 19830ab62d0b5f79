"""Scores for applications that are traced already: a receiver of OTLP, and readers of the spans that it gets."""
