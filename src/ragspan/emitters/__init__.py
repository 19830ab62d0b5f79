"""Emitters for tracing tools that keep scores of their own. Each needs the extra of its name, such as `ragspan[phoenix]`."""
