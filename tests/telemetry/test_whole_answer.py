"""One answer with everything that there can be, as the spans that it becomes: `whole_answer.json` has them.

After a change that is meant: `python tests/telemetry/test_whole_answer.py`, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragspan import RagRecord, RetrievedContext
from ragspan.messages import ErrorReport, Message, ToolRequest
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.records import Generation, Reranking, Retrieval, SpanAnchor, ToolCall
from ragspan.telemetry import OTelEmitter

EXPECTED = Path(__file__).with_name("whole_answer.json")
STARTED, SECOND = 1_700_000_000_000_000_000, 1_000_000_000
DOCUMENTS = (
    RetrievedContext(text="The Nile is 6650 km long.", id="doc-1", rank=0, score=0.9),
    RetrievedContext(text="The Nile ends in Egypt.", rank=1),
)
REQUESTED = Message(
    role="assistant", text="", tool_requests=(ToolRequest(name="search", arguments='{"query": "Nile"}', id="call-1"),)
)
RECORD = RagRecord(
    question="How long is the Nile?",
    contexts=DOCUMENTS,
    response="It is 6650 km long.",
    record_id="record-1",
    framework="langchain",
    name="rivers",
    is_agent=True,
    status="error",
    error_type="NoStock",
    error=ErrorReport(type="shop.NoStock", message="no boat left"),
    session_id="s1",
    user_id="u1",
    tags=("prod",),
    swallowed_errors=("TimeoutError",),
    metadata={"release": "2.1"},
    started_ns=STARTED,
    ended_ns=STARTED + 9 * SECOND,
    parent=SpanAnchor(trace_id=0xA1, span_id=0xB2, trace_state="vendor=value", is_remote=True),
    tool_calls=(
        ToolCall(
            name="order",
            started_ns=STARTED + SECOND,
            ended_ns=STARTED + 2 * SECOND,
            call_id="call-1",
            arguments='{"what": "boat"}',
            result="ordered",
            error_type="NoStock",
            error=ErrorReport(type="shop.NoStock", message="no boat left"),
        ),
        ToolCall(name="inner", started_ns=STARTED + SECOND, ended_ns=STARTED + 2 * SECOND, within=0),
    ),
    retrievals=(
        Retrieval(
            name="vector_store",
            query="length of the Nile",
            started_ns=STARTED + SECOND,
            ended_ns=STARTED + 2 * SECOND,
            contexts=DOCUMENTS,
            data_source_id="atlas",
            top_k=4,
            tool_name="look_up",
            tool_call_id="call-2",
            within=1,
        ),
    ),
    rerankings=(
        Reranking(
            name="CrossEncoder",
            query="Nile",
            started_ns=STARTED + 2 * SECOND,
            ended_ns=STARTED + 3 * SECOND,
            given=DOCUMENTS,
            contexts=DOCUMENTS[:1],
            model="ranker-1",
            top_k=1,
        ),
    ),
    generations=(
        Generation(
            model="small-model",
            provider="openai",
            started_ns=STARTED + 3 * SECOND,
            ended_ns=STARTED + 9 * SECOND,
            first_token_ns=STARTED + 5 * SECOND,
            input_tokens=100,
            output_tokens=20,
            cached_tokens=7,
            streamed=True,
            finish_reason="stop",
            response_id="chatcmpl-1",
            response_model="small-2026",
            prompt=(
                Message(role="system", text="Answer from the atlas."),
                Message(role="user", text="How long is the Nile?"),
                REQUESTED,
                Message(role="tool", text="6650 km", tool_call_id="call-1"),
            ),
            reply=Message(role="assistant", text="It is 6650 km long."),
        ),
        Generation(model=None, provider=None, started_ns=STARTED, ended_ns=STARTED + SECOND, error_type="Refused"),
    ),
)
OUTCOMES = {
    "faithfulness": Score(
        value=0.25,
        threshold=0.5,
        explanation="One of four.",
        judge="gpt",
        prompt_version="2",
        details={"spread": 0.1},
        causes=(Cause(kind="unsupported", claim="c"),),
    ),
    "completeness": Score(value=1, judge="overlap", fallback="budget_exhausted"),
    "context_adherence": NotApplicable(reason="no_claims", detail="SECRET"),
    "own": MetricFailure(error_type="timeout", message="SECRET"),
}


def spans_of(*, late=False, **options):
    """The spans as data, with their parents' names."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    handle = OTelEmitter(tracer_provider=provider, dimensions=["release"], **options).start(RECORD)
    facts = {"record": RECORD, "span": handle.span, "refusal": True, "language": "de", "durations": {"own": 1.5}}
    handle.finish(ScoredRecord(outcomes={} if late else OUTCOMES, **facts))
    if late:
        handle.late(ScoredRecord(outcomes=OUTCOMES, late=True, **facts))
    names = {span.context.span_id: span.name for span in exporter.get_finished_spans()}
    return {
        span.name: {
            "parent": names.get(span.parent.span_id, f"{span.parent.span_id:x}"),
            "kind": span.kind.name,
            "seconds": [(time - STARTED) / SECOND for time in (span.start_time, span.end_time)],
            "status": span.status.status_code.name,
            "attributes": dict(sorted(span.attributes.items())),
            "events": [{event.name: dict(event.attributes)} for event in span.events],
            "links": [names[link.context.span_id] for link in span.links],
        }
        for span in exporter.get_finished_spans()
        if not late or span.name.startswith("evaluation")
    }


CASES = {
    "with content": {"capture_content": True},
    "without content": {"capture_content": False, "explanations": True},
    "late scores": {"capture_content": True, "late": True},
}


def as_json(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("case", CASES)
def test_a_whole_answer_is_these_spans(case):
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))[case]

    assert as_json(spans_of(**CASES[case])) == expected
    assert "SECRET" not in json.dumps(expected)


if __name__ == "__main__":
    found = {case: spans_of(**options) for case, options in CASES.items()}
    EXPECTED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
