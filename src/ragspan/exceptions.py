"""Errors that ragspan raises, all of them for misuse and never from the request path.

RagspanError
├── ConfigurationError   a setting or argument that cannot be right
├── RecordError          JSON that is no record
└── JudgeError           a judge could not give a verdict
"""

from __future__ import annotations


class RagspanError(Exception):
    """The base of every error that ragspan raises on purpose."""


class ConfigurationError(RagspanError, ValueError):
    """A setting is wrong; the message names it, its value and what is allowed."""


class RecordError(RagspanError, ValueError):
    """Text that should be a record is none; the message names the field."""


class JudgeError(RagspanError):
    """A judge could not give its verdicts.

    Args:
        error_type: short and of few kinds ("RateLimitError", "InvalidVerdict"): it becomes an attribute value.
        message: what happened, for people. It never holds a prompt or a key.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
