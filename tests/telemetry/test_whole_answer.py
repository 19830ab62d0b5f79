"""One answer with everything that there can be, as the spans, events and values that it becomes: `whole_answer.json` has them.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest` with this file, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan import RagRecord, RetrievedContext
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.messages import ErrorReport, Message, ToolRequest
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score, ScoredRecord, ScreenScore
from ragspan.records import Generation, Reranking, Retrieval, SpanAnchor, ToolCall

WHOLE = WholeRecords(Path(__file__).with_name("whole_answer.json"))
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
        screen=ScreenScore(value=1, label="pass", judge="overlap"),
        evidence=tuple(
            ClaimVerdict(index=index, claim="It is 6650 km long.", verdict=verdict)
            for index, verdict in enumerate(("supported", "unsupported", "unsure"))
        ),
        causes=(Cause(kind="unsupported", claim="c"),),
    ),
    "completeness": Score(value=1, judge="overlap", fallback="budget_exhausted"),
    "context_adherence": NotApplicable(reason="no_claims", detail="SECRET"),
    "own": MetricFailure(error_type="timeout", message="SECRET"),
    "unnamed": Score(value=0.5, details={"odd": 1}),
}


def told(telemetry, *, late=False, **options):
    """What is sent, as data; spans with their parents' names."""
    handle = telemetry.emitter(dimensions=["release"], **options).start(RECORD)
    facts = {"record": RECORD, "span": handle.span, "refusal": True, "language": "de", "durations": {"own": 1.5}}
    handle.finish(ScoredRecord(outcomes={} if late else OUTCOMES, asked="doubtful", **facts))
    if late:
        handle.late(ScoredRecord(outcomes=OUTCOMES, asked="random", late=True, **facts))
    names = {span.context.span_id: span.name for span in telemetry.spans}
    spans = {
        span.name: {
            "parent": names.get(span.parent.span_id, f"{span.parent.span_id:x}"),
            "kind": span.kind.name,
            "seconds": [(time - STARTED) / SECOND for time in (span.start_time, span.end_time)],
            "status": span.status.status_code.name,
            "attributes": dict(sorted(span.attributes.items())),
            "events": [{event.name: dict(event.attributes)} for event in span.events],
            "links": [names[link.context.span_id] for link in span.links],
        }
        for span in telemetry.spans
        if not late or span.name.startswith("evaluation")
    }
    events = [{event.event_name: event.attributes, "on": names[event.span_id]} for event in telemetry.events]
    values = [[point.sum, dict(point.attributes)] for point in telemetry.points("ragspan.score")]
    return {"spans": spans, "events": events, "values": values}


CASES = {
    "with content": {"capture_content": True, "explanations": None},
    "without content": {"capture_content": False},
    "late scores": {"capture_content": "events", "explanations": None, "late": True},
}


@pytest.mark.parametrize("case", CASES)
def test_a_whole_answer_is_this(telemetry, case):
    known, found = WHOLE.told(case, json.loads(json.dumps(told(telemetry, **CASES[case]), default=dict)))

    assert found == known
    assert "SECRET" not in json.dumps(known)
