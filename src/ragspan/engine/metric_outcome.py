"""What a metric's answer or its error means, and what is known of a response beside its scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ragspan.arguments import with_article
from ragspan.engine.threads import call_guarded
from ragspan.exceptions import JudgeError
from ragspan.judges.llm.requests import is_outage, status_of
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.text.languages import languages_of
from ragspan.text.responses import is_refusal

_MAX_MESSAGE = 500  # characters
_MAX_TYPE = 100


async def outcome_of(score: Callable[..., object], *args: object) -> Outcome:
    """What a metric answers, or what the error means that it or its judge raises."""
    try:
        answer = score(*args)
        answer = await answer if inspect.isawaitable(answer) else answer
    except BaseException as error:  # noqa: BLE001 - a metric is the user's code: nothing it raises may go further
        text, _ = call_guarded(str, error)
        kind, outage = type(error).__name__, isinstance(error, Exception) and is_outage(error)
        if isinstance(error, JudgeError):
            kind, outage = error.error_type, error.outage
        message = (text or "")[:_MAX_MESSAGE]
        return MetricFailure(error_type=kind[:_MAX_TYPE], message=message, outage=outage, status=status_of(error))
    if isinstance(answer, (Score, NotApplicable, MetricFailure)):
        return answer
    message = f"score() returned {with_article(type(answer).__name__)}, not a Score, NotApplicable or MetricFailure"
    return MetricFailure(error_type="invalid_outcome", message=message)


def about_response(record: RagRecord) -> tuple[bool, str | None]:
    """Whether the response is a refusal, and its language, as an ISO 639-1 code."""
    response = record.response or ""
    if not response.strip():
        return False, None
    contexts = [context.text for context in record.contexts or ()]
    return is_refusal(response), languages_of(response, contexts, record.question or "").response.code
