"""What holds beside OpenInference and other tracing, whatever the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from openinference.instrumentation import suppress_tracing
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import TraceState
from traced_application import SCORE

from ragspan import NotApplicable


class Dropping(Sampler):
    """Drops the spans of this name."""

    def __init__(self, name):
        self.name = name

    def should_sample(self, parent_context, trace_id, name, *args, **kwargs):
        return SamplingResult(Decision.DROP if name == self.name else Decision.RECORD_AND_SAMPLE)

    def get_description(self):
        return "Dropping"


@contextmanager
def instrumented(instrumentor, **options):
    """OpenInference traces every call of the framework."""
    instrumentor.instrument(**options)
    try:
        yield
    finally:
        instrumentor.uninstrument()


class TracedAlready:
    """Scores are on the trace that is there, below the answer's span, drawn once.

    The module has a fixture `ask`: it takes an application, and asks a question whose answer is scored there.
    """

    openinference: Callable[[], Any]
    root: str
    """The name of the span that OpenInference makes for the answer."""
    workflow: str
    """What answers, as ragspan's own span says it."""

    @pytest.mark.parametrize("separate", [False, True])
    def test_openinference_with_traces_of_its_own(self, application, ask, separate):
        """What was current is the answer's no more than any other span above it."""
        options = {"tracer_provider": application.provider, "separate_trace_from_runtime_context": separate}
        with instrumented(self.openinference(), **options), application.tracer.start_as_current_span("POST /ask"):
            ask(application)

        assert application.scored_spans() == [self.root]
        in_one_trace = application.span(SCORE).context.trace_id == application.span("POST /ask").context.trace_id
        assert in_one_trace is not separate

    def test_openinference_that_begins_between_two_requests(self, application, ask):
        with application.tracer.start_as_current_span("before"):
            ask(application)
        with instrumented(self.openinference(), tracer_provider=application.provider):
            ask(application)
        with application.tracer.start_as_current_span("after"):
            ask(application)

        assert application.scored_spans() == sorted(["after", "before", self.root])

    def test_suppressed_tracing_is_suppressed_scoring(self, application, ask):
        with instrumented(self.openinference(), tracer_provider=application.provider), suppress_tracing():
            ask(application)

        assert application.outcomes() == []
        assert application.spans() == []

    @pytest.mark.parametrize("whole", [False, True], ids=["the root", "the trace"])
    def test_nothing_is_judged_where_no_span_is_kept(self, application, ask, whole):
        """A score below a span that nobody gets would hang in the air."""
        sampler = ParentBased(ALWAYS_OFF) if whole else Dropping(self.root)
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        with instrumented(self.openinference(), tracer_provider=provider):
            ask(application)

        assert application.outcomes() == [NotApplicable(reason="not_sampled")]
        assert application.drawn_by_ragspan() == []

    def test_an_answer_under_no_span_is_drawn_or_its_score_would_have_no_place(self, application, ask):
        ask(application)

        answer = application.span(f"invoke_workflow {self.workflow}")
        assert answer.parent is None
        assert answer.attributes["ragspan.score.context_adherence"] == 1.0

    @pytest.mark.parametrize("twice", [False, True])
    def test_an_answer_is_drawn_twice_by_choice(self, new_application, ask, twice):
        application = new_application("answer")
        if twice:
            with instrumented(self.openinference(), tracer_provider=application.provider):
                for _ in range(3):
                    ask(application)
        else:
            with application.tracer.start_as_current_span("POST /ask"):
                ask(application)

        above = self.root if twice else "POST /ask"
        assert {span.parent.span_id for span in application.spans(f"invoke_workflow {self.workflow}")} == {
            span.context.span_id for span in application.spans(above)
        }


class Anchored:
    """The span under which an answer belongs is the one that is current at the call.

    The module has fixtures: `asked` asks a question and returns the record, `aask` asks asynchronously.
    """

    def test_no_span_is_current(self, asked):
        assert asked("One?").parent is None

    def test_the_span_that_is_current_at_the_call(self, asked, telemetry):
        with telemetry.tracer_provider.get_tracer("application").start_as_current_span("request") as span:
            record = asked("One?")

        assert anchored(record) == current(span)
        assert [span.name for span in telemetry.spans()] == ["request"]  # the handler makes none

    def test_a_span_that_is_not_sampled(self, asked):
        context = trace.SpanContext(
            trace_id=1, span_id=2, is_remote=True, trace_flags=trace.TraceFlags(0), trace_state=TraceState([("a", "b")])
        )
        with trace.use_span(trace.NonRecordingSpan(context)):
            parent = asked("One?").parent

        assert (parent.trace_id, parent.span_id, parent.sampled, parent.is_remote) == (1, 2, False, True)
        assert parent.trace_state == "a=b"

    async def test_each_of_many_requests_has_its_own_span(self, captured, aask, telemetry):
        tracer = telemetry.tracer_provider.get_tracer("application")

        async def ask(number):
            with tracer.start_as_current_span(f"request {number}") as span:
                await aask(f"{number}?")
            return f"{number}?", current(span)

        spans = dict(await asyncio.gather(*(ask(number) for number in range(20))))

        assert {record.question: anchored(record) for record in captured.records()} == spans


def current(span):
    context = span.get_span_context()
    return context.trace_id, context.span_id


def anchored(record):
    return record.parent.trace_id, record.parent.span_id
