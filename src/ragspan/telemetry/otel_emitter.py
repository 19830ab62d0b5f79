"""The emitter that writes scores on the trace of their answer.

Guarantees:
- It keeps only the spans of answers that are being scored. Each is ended once, by its handle or by `shutdown`.
- `flush` and `shutdown` may be called from any thread. The engine limits how long it waits for them.
- The providers belong to the application: they are flushed, never shut down.
- The child of a fork starts with no spans: the parent ends those that it had.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, TracerProvider

from ragspan.config import CaptureContent, SpanStyle
from ragspan.forks import watch_forks
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.base import AnswerHandle
from ragspan.telemetry.content import ContentPolicy, Dimensions, EmitterOptions
from ragspan.telemetry.otel_context import anchor_of, context_with, is_valid
from ragspan.telemetry.providers import Providers
from ragspan.telemetry.score_attributes import event_attributes
from ragspan.telemetry.spans import (
    AnswerSpans,
    add_evaluation,
    end_answer,
    finish_answer,
    start_answer,
    start_steps,
)
from ragspan.telemetry.values import encodable, named
from ragspan.throttled_log import ThrottledLog

_NO_TRACER_PROVIDER = (
    "There is no span to write scores on: no TracerProvider is set up, or it is switched off. "
    "Call opentelemetry.trace.set_tracer_provider, or pass tracer_provider= to OTelEmitter."
)
_TRACED_TWICE = (
    "Another instrumentation already traces these answers, so each appears twice. "
    "RAGSPAN_SPANS=scores, or OTelEmitter(spans='scores'), adds the scores to the existing spans."
)


class OTelEmitter:
    """Sends scores to OpenTelemetry: span attributes, log events and a histogram.

    Args:
        score_wait: seconds that an answer's span waits for its scores at most. Scores that come later get evaluation
            spans of their own.
        spans: `"answer"` makes a span for each answer, with children for its tools, searches and model calls. `"scores"` only
            adds evaluation spans below the span that the answer ran under, for applications that are already traced. An
            answer that ran under no span gets one, as with `"answer"`. If another instrumentation traces the answers as
            well, `"answer"` logs one warning.
        capture_content: send questions, contexts, responses, prompts, errors' messages and users' ids; `"spans"` or
            `"events"` only there. None reads `RAGSPAN_CAPTURE_CONTENT`, or
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`; without both, nothing is sent. What `OPENINFERENCE_HIDE_*`
            names stays hidden.
        explanations: True sends the judges' explanations unchanged, with quotes of users' texts; False sends none. None reads
            `RAGSPAN_EXPLANATIONS`; without it, explanations have quotes where content goes, and counts and places elsewhere.
        max_explanation_chars: the longest explanation, 1 to 8192. Longer ones are cut.
        dimensions: keys of the records' metadata, at most five, whose values go on spans, events and the histogram: a release,
            a prompt's version, a tenant. The histogram has 50 values of each in each process; the others are `_OTHER`.
        openinference: write each score on a span a second time, as an OpenInference evaluation.
        tracer_provider: takes the spans. None, as for the other two, means the global provider, also if it is set later.
        meter_provider: takes the histogram.
        logger_provider: takes the events.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        score_wait: float = 10.0,
        spans: SpanStyle = "answer",
        capture_content: CaptureContent | None = None,
        explanations: bool | None = None,
        max_explanation_chars: int = 1000,
        dimensions: Sequence[str] = (),
        openinference: bool = True,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        options = EmitterOptions(
            score_wait=score_wait,
            spans=spans,
            content=ContentPolicy(
                capture_content=capture_content,
                explanations=explanations,
                max_explanation_chars=max_explanation_chars,
            ),
            dimensions=Dimensions(dimensions),
            openinference=openinference,
        )
        self._set_up(options, Providers(tracer_provider, meter_provider, logger_provider))

    def __getstate__(self) -> EmitterOptions:
        """The options, for another process with global providers of its own.

        Raises:
            TypeError: this emitter was given providers, which belong to this process.
        """
        if self.providers.are_given:
            raise TypeError("its providers belong to this process; leave them out to use the global ones")
        return self.options

    def __setstate__(self, options: EmitterOptions) -> None:
        self._set_up(options, Providers(None, None, None))

    def _set_up(self, options: EmitterOptions, providers: Providers) -> None:
        self.options, self.providers = options, providers
        self._log = ThrottledLog()
        self._has_warned = False
        self.is_closed = False
        self._forget()
        watch_forks(self, OTelEmitter._forget)

    def _forget(self) -> None:
        self.unfinished: dict[_Answer, AnswerSpans] = {}
        """The spans that have not ended. All uses are single operations of the dictionary, which need no lock."""

    @property
    def score_wait(self) -> float:
        """Seconds that an answer's span waits for its scores at most."""
        return self.options.score_wait

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start the answer's span; the handle has none if there is no tracer provider.

        With `spans="scores"` no span is started for an answer that ran under one: that one is the answer's.
        """
        searches = tuple(retrieval.span for retrieval in record.retrievals)
        if self.is_closed:
            return _Answer(self, record, None, ())
        if self.options.spans == "scores" and is_valid(record.parent):
            return _Answer(self, record, record.parent, searches)
        if not self._has_warned and any(searches):
            self._has_warned = True
            self._log.trouble("traced_twice", _TRACED_TWICE)
        span = start_answer(self.providers.tracer, record, self.options.content)
        span_context = span.get_span_context()
        # Without an SDK, and if it is switched off, the API returns the parent in place of a new span.
        if not span_context.is_valid or (record.parent is not None and span_context.span_id == record.parent.span_id):
            self._log.trouble("no_tracer_provider", _NO_TRACER_PROVIDER)
            return _Answer(self, record, None, searches)
        if not span.is_recording():
            return _Answer(self, record, anchor_of(span_context), searches)
        spans = AnswerSpans(span, self._start_steps(span, record) if record.steps else ())
        pairs = zip(spans.steps, record.steps, strict=False)
        found = tuple(anchor_of(one.get_span_context()) for one, step in pairs if isinstance(step, Retrieval))
        answer = _Answer(self, record, anchor_of(span_context), found)
        self.unfinished[answer] = spans
        return answer

    def _start_steps(self, answer: Span, record: RagRecord) -> tuple[Span, ...]:
        """Start the spans of the steps with the answer's, so that other emitters know them before it ends."""
        try:
            return start_steps(self.providers.tracer, answer, record)
        except Exception as error:  # noqa: BLE001 - from the application's processors; the answer's span is still needed
            self._log.trouble("steps", "the spans of an answer's steps could not be started: %s", type(error).__name__)
            return ()

    def flush(self, timeout: float) -> bool:
        """Flush the providers one after the other; True only if all succeeded.

        If an exporter hangs, this can take longer than `timeout` seconds. The engine calls it in a thread, and stops waiting.
        """
        return self.providers.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        """End the spans of the unfinished answers without scores, flush, and emit nothing more."""
        self.is_closed = True
        for answer in list(self.unfinished):
            answer.abandon()
        self.flush(timeout)


@dataclass(slots=True, eq=False)
class _Answer:
    """An answer that is being scored."""

    emitter: OTelEmitter
    record: RagRecord
    span: SpanAnchor | None
    retrieval_spans: tuple[SpanAnchor | None, ...]

    def finish(self, scored: ScoredRecord) -> None:
        """Write the outcomes on the answer's span and end it. If the span is not ours, add evaluation spans below it."""
        if self.emitter.is_closed:
            self.abandon()
            return
        spans = self.emitter.unfinished.pop(self, None)
        if spans is not None:
            finish_answer(spans, scored, self.emitter.options)
        elif self.emitter.options.spans == "scores":
            self._add_evaluations(scored)
        self._signal(scored, None if spans is None else spans.answer)

    def late(self, scored: ScoredRecord) -> None:
        """Write the outcomes on evaluation spans below the answer's."""
        if not self.emitter.is_closed:
            self._add_evaluations(scored)
            self._signal(scored)

    def abandon(self) -> None:
        """End the spans as they are."""
        spans = self.emitter.unfinished.pop(self, None)
        if spans is not None:
            end_answer(spans, self.record)

    def _add_evaluations(self, scored: ScoredRecord) -> None:
        target, options = self.span or self.record.parent, self.emitter.options
        if target is None or not target.sampled or not is_valid(target):
            return
        for metric, outcome in scored.outcomes.items():
            # With `spans="scores"` an answer without scores gets no spans.
            if options.spans == "answer" or not isinstance(outcome, NotApplicable):
                add_evaluation(self.emitter.providers.tracer, target, scored, metric, options)

    def _signal(self, scored: ScoredRecord, own: Span | None = None) -> None:
        """Send events and measurements that point at the answer's span, so that logs and exemplars lead to it.

        If the answer is not sampled, no backend has its span, so they point at its parent.
        """
        providers, dimensions = self.emitter.providers, self.emitter.options.dimensions.bounded(scored.record)
        is_sampled = self.span is not None and self.span.sampled
        context = context_with((own or self.span) if is_sampled else self.record.parent)
        for metric, outcome in scored.outcomes.items():
            if isinstance(outcome, (Score, MetricFailure)):
                providers.event_logger.emit(
                    timestamp=time.time_ns(),
                    context=context,
                    event_name=semconv.EVENT_GEN_AI_EVALUATION_RESULT,
                    attributes=encodable(event_attributes(scored, metric, self.emitter.options)),
                )
            if isinstance(outcome, Score):
                attributes = {
                    semconv.GEN_AI_EVALUATION_NAME: named(metric),
                    semconv.GEN_AI_EVALUATION_SCORE_LABEL: outcome.label,
                    semconv.JUDGE: outcome.judge and named(outcome.judge),
                    **dimensions,
                }
                providers.score_histogram.record(float(outcome.value), encodable(attributes), context)
