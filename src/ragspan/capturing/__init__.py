"""Captures answers: of plain Python code (`answer`), and of frameworks, whose requests are noted in logs (`log`, `snapshots`)."""

from ragspan.capturing.answer import Answer, add_context_recorder, capture, enclosing_answer, record_contexts

__all__ = ["Answer", "add_context_recorder", "capture", "enclosing_answer", "record_contexts"]
