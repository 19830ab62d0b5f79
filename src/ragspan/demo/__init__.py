"""`ragspan demo`: eight questions to a small handbook, answered by real frameworks and scored on their own traces.

The core holds the handbook, the script and the report. An integration answers: it registers a class that is an
`AnsweringFramework` in the entry-point group `ragspan_demo`.
"""

from __future__ import annotations

from ragspan.demo.script import SCRIPT, AnsweringFramework, Asked, Page, Way, find

__all__ = ["SCRIPT", "AnsweringFramework", "Asked", "Page", "Way", "find"]
