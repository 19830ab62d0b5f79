"""`ragspan demo`: a dozen questions, answered by a real framework and scored on their own traces.

The core holds the questions, the passages, a model that needs no network, and the report. A framework's integration
answers: it registers a class that is an `AnsweringFramework` in the entry-point group `ragspan_demo`.
"""

from __future__ import annotations

from ragspan.demo.script import SCRIPT, AnsweringFramework, Asked, Manner, Way

__all__ = ["SCRIPT", "AnsweringFramework", "Asked", "Manner", "Way"]
