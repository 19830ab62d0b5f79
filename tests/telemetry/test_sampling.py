from __future__ import annotations

from opentelemetry.sdk.trace import sampling
from opentelemetry.sdk.trace.sampling import ParentBased, SamplingResult, TraceIdRatioBased

from ragspan.outcomes import Score

SCORES = {"m": Score(value=0.5)}


def test_at_half_the_rate_no_trace_is_torn(make_telemetry, make_record, answer):
    telemetry = make_telemetry(sampler=ParentBased(TraceIdRatioBased(0.5)))
    emitter = telemetry.emitter()
    anchors = [answer(emitter, make_record(parent=None, record_id=str(i)), SCORES) for i in range(200)]

    kept = {anchor.trace_id for anchor in anchors if anchor.sampled}
    sizes = {trace: sum(span.context.trace_id == trace for span in telemetry.spans) for trace in kept}
    assert 0 < len(kept) < 200
    assert set(sizes.values()) == {3}
    assert len(telemetry.spans) == 3 * len(kept)


class KeepsWhatItIsAskedFor(sampling.Sampler):
    """Samples by attributes, and remembers what it saw at the start of each span."""

    def __init__(self):
        self.seen = {}

    def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None, trace_state=None):
        self.seen[name] = dict(attributes or {})
        return SamplingResult(sampling.Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self):
        return "KeepsWhatItIsAskedFor"


def test_a_sampler_sees_what_the_answer_is_at_its_start(make_telemetry, make_record):
    sampler = KeepsWhatItIsAskedFor()
    make_telemetry(sampler=sampler).emitter().start(make_record(status="error", session_id="s", user_id="u"))

    assert sampler.seen["invoke_workflow rivers"] == {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "ragspan.record_id": "record-1",
        "ragspan.framework": "langchain",
        "ragspan.answer.status": "error",
        "session.id": "s",
        "gen_ai.conversation.id": "s",
        "gen_ai.workflow.name": "rivers",
    }
