"""Errors that ragspan raises, all of them for misuse and never from the request path.

RagspanError
├── ConfigurationError   a setting or argument that cannot be right
├── RecordError          JSON that is no record
├── TableError           a table that cannot be read or lacks a column
└── JudgeError           a judge could not give a verdict
    └── BudgetExhausted  ... because the engine's budget does not allow the request
"""

from __future__ import annotations

import copyreg


class RagspanError(Exception):
    """The base of every error that ragspan raises on purpose."""


class ConfigurationError(RagspanError, ValueError):
    """A setting is wrong; the message names it, its value and what is allowed."""


class RecordError(RagspanError, ValueError):
    """Text that should be a record is none; the message names the field."""


class TableError(RagspanError, ValueError):
    """A table cannot be evaluated; the message says where it is wrong, and what would be right."""


class JudgeError(RagspanError):
    """A judge could not give its verdicts.

    Args:
        error_type: short and of few kinds ("RateLimitError", "InvalidVerdict"): it becomes an attribute value.
        message: what happened, for people. It never holds a prompt or a key.
        outage: whether it is the service that failed, so that other requests would fare no better now; false for what
            is about one request, such as a context that is too long.
    """

    def __init__(self, error_type: str, message: str, *, outage: bool = False) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.outage = outage

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt by calling their class with what they print, and this one takes more.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class BudgetExhausted(JudgeError):  # noqa: N818 - it tells of a state, not of a mistake
    """A request was not sent, because the budget of the engine that asks does not allow it now.

    Args:
        limit: the argument of `Budget` that leaves no room for it.
    """

    def __init__(self, limit: str) -> None:
        super().__init__("budget_exhausted", f"{limit} leaves no room for the request")
        self.limit = limit
