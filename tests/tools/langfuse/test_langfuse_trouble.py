"""Scores on their way to a Langfuse that is there, not there, slow, or of another mind."""

from __future__ import annotations

from writer_law import WriterLaw


class TestTrouble(WriterLaw):
    pass
