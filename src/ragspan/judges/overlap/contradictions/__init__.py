"""Claims held against the context sentences that they rest on: what both say, and where they say otherwise."""
