"""The errors of ragspan. The request path never raises one."""

from __future__ import annotations

from ragspan.usage import Usage


class RagspanError(Exception):
    """The base of every error that ragspan raises on purpose."""


class ConfigurationError(RagspanError, ValueError):
    """A setting is wrong; the message names it, its value and what is allowed."""


class RecordError(RagspanError, ValueError):
    """A text is not a record; the message names the field."""


class TableError(RagspanError, ValueError):
    """A table cannot be evaluated; the message says where it is wrong, and what is expected."""


class JudgeError(RagspanError):
    """A judge could not give its verdicts.

    Args:
        error_type: one of few short names ("RateLimitError", "InvalidVerdict"), because it becomes an attribute value.
        message: for people. It never contains a prompt or a key.
        outage: True if the service failed, so that other requests would fail now as well.
        status: the HTTP status of a refusal, where there is one.
        usage: what the request took all the same; None if it is not known.
    """

    def __init__(
        self,
        error_type: str,
        message: str,
        *,
        outage: bool = False,
        status: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(error_type, message)  # what a copy in another process is made of
        self.error_type = error_type
        self.message = message
        self.outage = outage
        self.status = status
        self.usage = usage

    def __str__(self) -> str:
        return self.message


class BudgetExhausted(JudgeError):  # noqa: N818 - the name of a state
    """A request was not sent, because `limit` of the engine's `Budget` does not allow it now; an outage if time will."""

    def __init__(self, limit: str, outage: bool) -> None:  # noqa: FBT001 - a copy is made by place
        super().__init__("budget_exhausted", f"{limit} leaves no room for the request", outage=outage)
        self.limit = limit
