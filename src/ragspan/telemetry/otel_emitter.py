"""The emitter that writes scores on the trace of their answer: spans built after the fact from recorded times, events, a histogram.

The providers belong to the application: they are flushed, never shut down. Those that it sets after our engine was made are
followed: what the API's own defaults give out until then goes to them. A span starts with the attributes that a sampler may use; the
others follow, within the limit of attributes.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, StatusCode, TracerProvider

from ragspan.arguments import SECONDS, counted, has_methods, one_of
from ragspan.config import DIMENSION_NAMES, SpanStyle
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.process import in_use, watch_forks
from ragspan.records import RagRecord, SpanAnchor, Step, ToolCall
from ragspan.telemetry import semconv
from ragspan.telemetry.content import MAX_DIMENSION_VALUES, ContentPolicy
from ragspan.telemetry.emitter_protocols import AnswerHandle, Engine
from ragspan.telemetry.otel_context import anchor_of_span, context_with, is_valid, span_context_of
from ragspan.telemetry.providers import exports_spans, flush_all, is_read, meter_of, scope, spans_waiting, why_no_spans
from ragspan.telemetry.score_attributes import answer_attributes, evaluation_attributes, event_attributes, measured
from ragspan.telemetry.step_attributes import KINDS, step_attributes, step_name
from ragspan.telemetry.values import clean_name, encodable, error_type, set_within_limit
from ragspan.throttled_log import ThrottledLog, log_line
from ragspan.turns import with_turns

ANSWER_KINDS = {
    True: ("invoke_agent", "AGENT", semconv.GEN_AI_AGENT_NAME),
    False: ("invoke_workflow", "CHAIN", semconv.GEN_AI_WORKFLOW_NAME),
}
"""Operation, OpenInference's kind and the attribute of the name, of an agent's answers and of others."""
_ALL_TIME = (0, 2**63 - 1)
_SCORE_BUCKETS = tuple(tenth / 10 for tenth in range(1, 11))
_NO_SPANS = (
    "There is no span to write scores on, and no judge is paid for any: %s. Call ragspan.configure() at the start of the "
    "program, or set up OpenTelemetry; RAGSPAN_EMITTERS=console prints scores."
)
_TRACED_TWICE = (
    "Another instrumentation already traces these answers, so each appears twice. "
    "RAGSPAN_SPANS=scores, or OTelEmitter(spans='scores'), adds the scores to the existing spans."
)


@dataclass(kw_only=True, eq=False, repr=False)
class OTelEmitter(ContentPolicy):
    """Sends scores to OpenTelemetry: span attributes, log events and a histogram.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    score_wait: float = 10.0
    """Seconds that an answer's span waits for its scores at most. Scores that come later get evaluation spans of their own."""
    spans: SpanStyle = "answer"
    """`"answer"` makes a span for each answer, with children for its tools, searches and model calls. `"scores"` only adds
    evaluation spans below the span that the answer ran under, for applications that are already traced. An answer that ran under
    no span gets one, as with `"answer"`. If another instrumentation traces the answers as well, `"answer"` logs one warning."""
    dimensions: Sequence[str] = ()
    """Keys of the records' metadata, at most five, whose values go on spans, events and the histogram: a release, a prompt's
    version, a tenant. The histogram has 50 values of each in each process; the others are `_OTHER`."""
    tracer_provider: TracerProvider | None = None
    """Takes the spans. None, as for the other two, means the global provider, also if it is set later."""
    meter_provider: MeterProvider | None = None
    """Takes the histogram."""
    logger_provider: LoggerProvider | None = None
    """Takes the events."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(*get_args(SpanStyle)).check_fields(self, "spans")
        SECONDS.check_fields(self, "score_wait")
        DIMENSION_NAMES.check_fields(self, "dimensions")
        self._known: dict[str, dict[str, None]] = {}
        for name in ("tracer", "meter", "logger"):
            rule = has_methods(f"a provider, with a method get_{name}, or None", f"get_{name}").or_none()
            rule.check_fields(self, f"{name}_provider")
        tracers, meters, loggers = self.providers
        self.tracer, self.event_logger = tracers.get_tracer(*scope()), loggers.get_logger(*scope())
        self.histogram = meter_of(meters).create_histogram(
            semconv.METRIC_SCORE,
            unit="1",
            description="Scores of answers, from 0 to 1.",
            explicit_bucket_boundaries_advisory=_SCORE_BUCKETS,
        )
        self.log = ThrottledLog()
        self.engines: weakref.WeakSet[Engine] = weakref.WeakSet()
        """Those that finish their work before the provider of spans is shut down."""
        self._forget()
        watch_forks(self, OTelEmitter._forget)

    def _forget(self) -> None:
        """In the child of a fork: the parent ends the spans that it had."""
        self.unfinished: dict[_AnswerSpan, Span] = {}
        """The spans that have not ended. All uses are single operations of the dictionary, which need no lock."""

    @property
    def providers(self) -> tuple[TracerProvider, MeterProvider, LoggerProvider]:
        """Those that it was given, else the global ones of the moment."""
        return (
            self.tracer_provider or trace.get_tracer_provider(),
            self.meter_provider or metrics.get_meter_provider(),
            self.logger_provider or _logs.get_logger_provider(),
        )

    def is_used_by(self, engine: Engine) -> None:
        """Have this engine finish its work before the provider of spans is shut down."""
        self.engines.add(engine)
        exports_spans(self.providers[0], self.engines, self.log)

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start the answer's span; the handle has none if there is no tracer provider.

        With `spans="scores"` no span is started for an answer that ran under one: that one is the answer's.
        """
        exports_spans(self.providers[0], self.engines, self.log)  # the global provider may have been set since
        if self.spans == "scores" and is_valid(record.parent):
            return _AnswerSpan(self, record, record.parent)
        if any(retrieval.span for retrieval in record.retrievals):
            in_use.say_once(logging.WARNING, _TRACED_TWICE)
        operation, kind, name = ANSWER_KINDS[record.is_agent]
        span = self.tracer.start_span(
            answer_name(record),
            context=context_with(record.parent),
            start_time=interval(record)[0],
            attributes=encodable(
                {
                    semconv.OPENINFERENCE_SPAN_KIND: kind,
                    semconv.GEN_AI_OPERATION_NAME: operation,
                    name: clean_name(record.name),
                    semconv.RECORD_ID: record.record_id,
                    semconv.FRAMEWORK: record.framework,
                    semconv.ANSWER_STATUS: record.status,
                    semconv.SESSION_ID: record.session_id,
                    semconv.GEN_AI_CONVERSATION_ID: record.session_id,
                    semconv.USER_ID: record.user_id if self.allows() else None,
                }
            ),
        )
        span_context = span.get_span_context()
        # Without an SDK, and if it is switched off, the API returns the parent in place of a new span.
        if not span_context.is_valid or (record.parent is not None and span_context.span_id == record.parent.span_id):
            if not is_read(self.providers[1]):
                self.log.report("no_spans", _NO_SPANS, why_no_spans() or "no TracerProvider is set up")
            return _AnswerSpan(self, record, None)
        answer = _AnswerSpan(self, record, anchor_of_span(span))
        if span.is_recording():
            self.unfinished[answer] = span
        return answer

    def dimensions_of(self, record: RagRecord) -> dict[str, str]:
        """The attributes of spans and events for the dimensions: the record's values, as text."""
        values = ((name, record.metadata.get(name)) for name in self.dimensions)
        found = ((name, value) for name, value in values if isinstance(value, (str, int, float)))
        return {f"{semconv.DIMENSION}{name}": clean_name(str(value)) for name, value in found}

    def bounded_dimensions(self, record: RagRecord) -> Mapping[str, str]:
        """The same for metrics: the first values of each dimension, and `_OTHER` for all later ones."""
        attributes = self.dimensions_of(record)
        for name, value in attributes.items():
            known = self._known.setdefault(name, {})
            if len(known) < MAX_DIMENSION_VALUES:
                known[value] = None
            if value not in known:
                attributes[name] = semconv.DIMENSION_OTHER
        return attributes

    def flush(self, timeout: float) -> bool:
        """Flush the providers one after the other; True only if all succeeded. An exporter that hangs can exceed the time."""
        return flush_all(self.providers, timeout)

    def shutdown(self, timeout: float) -> None:
        """End the spans of the unfinished answers without scores, and flush."""
        for answer in list(self.unfinished):
            answer.abandon()
        if not self.flush(timeout) and (waiting := spans_waiting()):
            log_line(logging.WARNING, "%s not sent yet: lost if the process ends now", counted(waiting, "span"))


@dataclass(eq=False)
class _AnswerSpan:
    """An answer that is being scored."""

    emitter: OTelEmitter
    record: RagRecord
    span: SpanAnchor | None

    @property
    def holds_scores(self) -> bool:
        """Whether outcomes would get anywhere."""
        emitter, (tracers, *others) = self.emitter, self.emitter.providers
        has_span = self.span is not None and self.span.sampled
        return (has_span and exports_spans(tracers, emitter.engines, emitter.log)) or any(map(is_read, others))

    def finish(self, scored: ScoredRecord) -> None:
        emitter = self.emitter
        span = emitter.unfinished.pop(self, None)
        if span is not None:
            try:
                set_within_limit(span, answer_attributes(scored, emitter, emitter.dimensions_of(scored.record)))
                if scored.record.status == "error":
                    self._fail(span, scored.record, interval(scored.record)[1])
            finally:
                self._end(span)
        elif emitter.spans == "scores":
            self._add_evaluations(scored)
        self._signal(scored, span)

    def late(self, scored: ScoredRecord) -> None:
        self._add_evaluations(scored)
        self._signal(scored)

    def abandon(self) -> None:
        span = self.emitter.unfinished.pop(self, None)
        if span is not None:
            self._end(span)

    def _end(self, span: Span) -> None:
        try:
            self._add_steps(span)
        except Exception as error:  # noqa: BLE001 - from the application's processors; the answer's span is still needed
            line = "the spans of an answer's steps could not be made: %s"
            self.emitter.log.report("steps", line, type(error).__name__)
        span.end(end_time=interval(self.record)[1])

    def _add_steps(self, answer: Span) -> None:
        """Add the finished spans of all steps in their order, tools first, each below its tool or else the answer."""
        spans: list[Span] = []
        tools = 0
        for step in with_turns(self.record.steps):
            started_ns, ended_ns = interval(step, interval(self.record))
            # A tool can only be inside one that began earlier.
            is_inside = step.within is not None and 0 <= step.within < tools
            start, rest = step_attributes(step, self.emitter)
            span = self.emitter.tracer.start_span(
                step_name(step),
                context=context_with(spans[step.within or 0] if is_inside else answer),
                kind=KINDS[type(step)][2],
                start_time=started_ns,
                attributes=encodable(start),
            )
            spans.append(span)
            tools += isinstance(step, ToolCall)
            failure = None if step.error_type is None else error_type(step.error_type)
            set_within_limit(span, {semconv.ERROR_TYPE: failure, **rest})
            if failure is not None:
                self._fail(span, step, ended_ns)
            span.end(end_time=ended_ns)

    def _fail(self, span: Span, failed: RagRecord | Step, at_ns: int) -> None:
        """Give the span the status ERROR, and the message if input and output are both allowed: it may quote them."""
        span.set_status(StatusCode.ERROR, error_type(failed.error_type))
        is_shown = self.emitter.allows(hidden_as="inputs") and self.emitter.allows(hidden_as="outputs")
        if failed.error is not None and is_shown:
            about = {
                semconv.EXCEPTION_TYPE: clean_name(failed.error.type),
                semconv.EXCEPTION_MESSAGE: failed.error.message,
            }
            span.add_event(semconv.EVENT_EXCEPTION, encodable(about), timestamp=at_ns)

    def _add_evaluations(self, scored: ScoredRecord) -> None:
        """Add a finished span for each outcome below the answer's span, with a link to it.

        Its time is the answer's end, not the time of scoring: backends measure a trace from its first start to its last end, and
        an evaluation a minute later would make the answer look a minute slow.
        """
        target, options, (_, ended_ns) = self.span or self.record.parent, self.emitter, interval(scored.record)
        if target is None or not target.sampled or not is_valid(target):
            return
        for metric, outcome in with_turns(scored.outcomes.items()):
            # With `spans="scores"` an answer without scores gets no spans.
            if options.spans == "scores" and isinstance(outcome, NotApplicable):
                continue
            about = {
                semconv.OPENINFERENCE_SPAN_KIND: "EVALUATOR",
                semconv.GEN_AI_OPERATION_NAME: "evaluation",
                semconv.RECORD_ID: scored.record.record_id,
                semconv.GEN_AI_EVALUATION_NAME: clean_name(metric),
            }
            span = options.tracer.start_span(
                clean_name(f"evaluation {metric}"),
                context=context_with(target),
                start_time=ended_ns,
                links=[Link(span_context_of(target))],
                attributes=encodable(about),
            )
            set_within_limit(span, evaluation_attributes(scored, metric, options, options.dimensions_of(scored.record)))
            if isinstance(outcome, MetricFailure):
                span.set_status(StatusCode.ERROR, error_type(outcome.error_type))
            span.end(end_time=ended_ns)

    def _signal(self, scored: ScoredRecord, own: Span | None = None) -> None:
        """Send events and measurements that point at the answer's span, or its parent where no backend has it: it is not sampled."""
        emitter, record = self.emitter, scored.record
        _, meters, loggers = emitter.providers
        is_sampled = self.span is not None and self.span.sampled
        context = context_with((own or self.span) if is_sampled else self.record.parent)
        for metric, outcome in with_turns(scored.outcomes.items()) if is_read(loggers) else ():
            if isinstance(outcome, (Score, MetricFailure)):
                emitter.event_logger.emit(
                    timestamp=time.time_ns(),
                    context=context,
                    event_name=semconv.EVENT_GEN_AI_EVALUATION_RESULT,
                    attributes=encodable(event_attributes(scored, metric, emitter, emitter.dimensions_of(record))),
                )
        for metric, outcome in with_turns(scored.outcomes.items()) if is_read(meters) else ():
            if isinstance(outcome, Score):
                for value, attributes in measured(metric, outcome, scored.asked):
                    about = encodable({**attributes, **emitter.bounded_dimensions(record)})
                    emitter.histogram.record(value, about, context)


def answer_name(record: RagRecord) -> str:
    """The name of the answer's span."""
    return clean_name(f"{ANSWER_KINDS[record.is_agent][0]} {record.name}")


def interval(timed: RagRecord | Step, within: tuple[int, int] = _ALL_TIME) -> tuple[int, int]:
    """Start and end in Unix nanoseconds, clamped to `within`, unless that is empty because it was not recorded.

    OpenTelemetry accepts an end before the start, and a negative time fails only when a whole batch is encoded.
    """
    earliest, latest = within if within[0] < within[1] else _ALL_TIME
    started_ns = min(max(timed.started_ns, earliest), latest)
    return started_ns, min(max(timed.ended_ns, started_ns), latest)
