"""What a metric is: a name and one method from a record to an outcome."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


class Metric(Protocol):
    """Turns a record into an outcome.

    The usual form is a dataclass with a `name` and `async def score`. A plain `def score` runs in a thread. What it
    raises becomes a `MetricFailure`.
    """

    @property
    def name(self) -> str:
        """Lower case with underscores: it becomes a part of attribute names."""
        ...

    def score(self, record: RagRecord) -> Outcome | Awaitable[Outcome]: ...


@runtime_checkable
class Screening(Protocol):
    """A metric that can tell from the record alone, before any judge is paid, that it does not apply."""

    def screen(self, record: RagRecord) -> NotApplicable | None: ...


def screen_answer(record: RagRecord) -> NotApplicable | None:
    """The reasons for which no metric of answer against contexts applies, the first that holds."""
    return screen_status(record) or screen_response(record) or screen_contexts(record)


def screen_status(record: RagRecord) -> NotApplicable | None:
    """The answer did not come to its end."""
    by_status = {"aborted": "answer_aborted", "error": "answer_error", "interrupted": "interrupted"}
    if record.status in by_status:
        return NotApplicable(reason=by_status[record.status], detail=record.error_type)
    return None


def screen_response(record: RagRecord) -> NotApplicable | None:
    return None if record.response and record.response.strip() else NotApplicable(reason="no_response")


def screen_question(record: RagRecord) -> NotApplicable | None:
    return None if record.question and record.question.strip() else NotApplicable(reason="no_question")


def screen_contexts(record: RagRecord) -> NotApplicable | None:
    if record.contexts is None:
        return NotApplicable(reason="contexts_unknown", detail="no callback showed the documents that the model saw")
    if not any(context.text.strip() for context in record.contexts):
        return NotApplicable(reason="no_contexts")
    return None
