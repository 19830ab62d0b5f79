"""Makes records of others' spans, by the rule that the handlers have: what is in the answering prompt counts.

`attribute_names` says how the conventions name things, `reading` makes steps of spans, and `requests` the record of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from ragspan.records import RagRecord
from ragspan.request import ToolStep, documents_of_result, searched_with
from ragspan.telemetry import semconv
from ragspan.throttled_log import ThrottledLog
from ragspan_receiver.readers.attribute_names import CONVENTIONS, GENAI, MODEL_PREFIXES
from ragspan_receiver.readers.payloads import Payloads
from ragspan_receiver.readers.reading import ReadSpan, become_search, read
from ragspan_receiver.readers.requests import record_of_spans, requests_in
from ragspan_receiver.spans import TracedSpan

_T = TypeVar("_T")
_log = ThrottledLog()


def records_of(spans: Sequence[TracedSpan], *, retrieval_tools: Collection[str] = ()) -> list[RagRecord]:
    """The answers in one trace, in the order in which they began; it raises nothing, whatever the spans hold.

    Each record's parent is the answer's span, and its id is always the same for that.

    Args:
        spans: of one trace, in any order. Those of unknown conventions only show which span is inside which.
        retrieval_tools: names of tools whose results are documents.
    """
    payloads, steps = Payloads(), {}
    for span in sorted(spans, key=lambda span: span.start_ns):
        step = _tried("a span", _step, span, payloads)
        if step is not None:
            steps[span.span_id] = step
            if isinstance(step.step, ToolStep) and step.step.name in retrieval_tools:
                become_search(step, searched_with(step.step), documents_of_result(step.step.output))
    found = [_tried("a request", record_of_spans, *given) for given in requests_in(spans, steps)]
    return sorted((record for record in found if record is not None), key=lambda record: record.started_ns)


def _tried(what: str, read_it: Callable[..., _T | None], *given: Any) -> _T | None:
    """What this reads; None, and a line in the log, if it raises: others wrote the spans."""
    try:
        return read_it(*given)
    except Exception as problem:  # noqa: BLE001
        _log.report(what, "%s of a trace could not be read (%s)", what, type(problem).__name__)
        return None


def _step(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step that a span is; ragspan's own spans are none. The log names spans about models that cannot be read."""
    about, scope = span.attributes, span.scope[:100] or "an unnamed scope"
    if scope.startswith(semconv.SCOPE):
        return None
    convention = next((one for one in CONVENTIONS if any(name in about for name in one.attributes)), None)
    step = None if convention is None else read(span, convention, payloads)
    if step is not None and step.model is not None and not step.model.messages and step.model.reply is None:
        what = f"calls of models by {scope!r} have no texts: content is off, or in a form that is not read"
        _log.report(what, "%s", what)
    is_unknown = convention is None or (convention is GENAI and not convention.kind_of(about)[1])
    if step is None and is_unknown and any(key.startswith(MODEL_PREFIXES) for key in about):
        operation = str(about.get("gen_ai.operation.name", "without gen_ai.operation.name"))
        what = f"spans of {scope!r} are of no convention that is read: {operation[:100]}"
        _log.report(what, "%s", what)
    return step
