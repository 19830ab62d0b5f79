"""The emitter that puts scores on the trace of the answer they belong to.

Guarantees:
- It keeps nothing but the spans of answers that are being scored. Each is ended once, by its handle or by `shutdown`.
- `flush` and `shutdown` may come from any thread. The engine bounds how long it waits for them.
- The providers belong to the application: they are flushed, never shut down.
- The child of a fork starts with no spans: those it inherits are the parent's to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from opentelemetry._logs import Logger, LoggerProvider
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, Tracer, TracerProvider

from ragspan.config import CaptureContent, SpanStyle
from ragspan.forks import watch_forks
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.base import AnswerHandle, EmitHandle
from ragspan.telemetry.content import ContentPolicy, Dimensions, EmitterOptions
from ragspan.telemetry.otel_context import anchor_of, context_with, is_valid
from ragspan.telemetry.providers import Providers
from ragspan.telemetry.score_attributes import evaluation_result, response_id
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
    "Scores have no span to go on: no TracerProvider is set up, or it is switched off. "
    "Call opentelemetry.trace.set_tracer_provider, or pass tracer_provider= to OTelEmitter."
)
_DRAWN_TWICE = (
    "Another instrumentation already traces these answers, so each appears twice. "
    "RAGSPAN_SPANS=scores, or OTelEmitter(spans='scores'), adds the scores to the existing spans."
)


class OTelEmitter:
    """Sends scores to OpenTelemetry: span attributes, log events and a histogram.

    Args:
        score_wait: the longest, in seconds, that an answer's span is held back for its scores. Scores that come later
            get evaluation spans of their own.
        spans: `"answer"` builds a span for each answer, with children for its tools, searches and model calls. `"scores"` only
            adds evaluation spans below the span that the answer ran under, for applications that are traced already; an
            answer that ran under no span is built as with `"answer"`, or its scores would have no place. Where another
            instrumentation draws the answers as well, the first answer that `"answer"` draws again is warned of.
        capture_content: send questions, contexts, responses, prompts, errors' messages and users' ids; `"spans"` or `"events"` only there. None asks
            the environment: `RAGSPAN_CAPTURE_CONTENT`, else `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, else no.
            What `OPENINFERENCE_HIDE_*` names stays hidden.
        explanations: True sends the judges' explanations as they are, which quote users' texts, and False sends none. None
            asks `RAGSPAN_EXPLANATIONS`, and else sends quotes only where content goes, and elsewhere counts and places.
        max_explanation_chars: where they are cut, 1 to 8192.
        dimensions: keys of the records' metadata, at most five, whose values go on spans, events and the histogram: a release,
            a prompt's version, a tenant. The histogram tells 50 values of each apart, in each process; the others are `_OTHER`.
        openinference: write each score on a span a second time, as an OpenInference evaluation.
        tracer_provider: where spans go. None, as for the others, means the global provider, whenever it is set.
        meter_provider: where the histogram goes.
        logger_provider: where the events go.

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
        self._options = EmitterOptions(
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
        self._providers = Providers(tracer_provider, meter_provider, logger_provider)
        self._log = ThrottledLog()
        self._told_of_doubles = False
        self._start_afresh()
        watch_forks(self, OTelEmitter._start_afresh)

    def __reduce__(self) -> tuple[Callable[[], OTelEmitter], tuple[()]]:
        """An emitter for another process, which has global providers of its own.

        Raises:
            TypeError: it was given providers, which belong to this process.
        """
        if self._providers.are_given:
            raise TypeError("its providers belong to this process; leave them out to use the global ones")
        options, content = self._options, self._options.content
        make = partial(
            OTelEmitter,
            score_wait=options.score_wait,
            spans=options.spans,
            capture_content=content.capture_content,
            explanations=content.explanations,
            max_explanation_chars=content.max_explanation_chars,
            dimensions=options.dimensions.names,
            openinference=options.openinference,
        )
        return make, ()

    def _start_afresh(self) -> None:
        self._answers = _Answers(providers=self._providers, options=self._options)

    @property
    def score_wait(self) -> float:
        """Seconds that an answer's span may be held back for its scores."""
        return self._options.score_wait

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start the answer's span; the handle has none if there is no tracer provider to start it with.

        Under `spans="scores"` nothing is started for an answer that ran under a span: it is that one.
        """
        answers, tracer = self._answers, self._answers.providers.tracer()
        if answers.is_closed:
            return EmitHandle(_nowhere)
        searches = tuple(retrieval.span for retrieval in record.retrievals)
        if self._options.spans == "scores" and is_valid(record.parent):
            return _Answer(answers, record, record.parent, searches)
        if not self._told_of_doubles and any(searches):
            # Once: it may be meant, but it doubles what is sent, and nobody sees it in the code.
            self._told_of_doubles = True
            self._log.trouble("drawn_twice", _DRAWN_TWICE)
        span = start_answer(tracer, record, self._options.content)
        span_context = span.get_span_context()
        # Without an SDK, and where it is switched off, the API hands the parent back in place of a new span.
        if not span_context.is_valid or (record.parent is not None and span_context.span_id == record.parent.span_id):
            self._log.trouble("no_tracer_provider", _NO_TRACER_PROVIDER)
            return _Answer(answers, record, None, searches)
        if not span.is_recording():
            return _Answer(answers, record, anchor_of(span_context), searches)
        spans = AnswerSpans(span, self._start_steps(tracer, span, record) if record.steps else ())
        pairs = zip(spans.steps, record.steps, strict=False)
        found = tuple(anchor_of(one.get_span_context()) for one, step in pairs if isinstance(step, Retrieval))
        answer = _Answer(answers, record, anchor_of(span_context), found)
        answers.unfinished[answer] = spans
        if self._answers.is_closed:  # in this very moment
            answer.abandon()
        return answer

    def _start_steps(self, tracer: Tracer, answer: Span, record: RagRecord) -> tuple[Span, ...]:
        """The spans of the steps, started with the answer's so that other emitters know them before it ends."""
        try:
            return start_steps(tracer, answer, record)
        except Exception as error:  # noqa: BLE001 - of the application's processors; the answer's span is there and is needed
            self._log.trouble("steps", "the spans of an answer's steps could not be started: %s", type(error).__name__)
            return ()

    def flush(self, timeout: float) -> bool:
        """Flush the providers, one after the other; True only if none of them failed.

        An exporter that hangs may keep this longer than `timeout` seconds: the engine asks in a thread, and stops waiting.
        """
        return self._providers.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        """End the spans of answers that will get no scores any more, flush, and emit nothing from here on."""
        self._answers.is_closed = True
        for answer in list(self._answers.unfinished):
            answer.abandon()
        self.flush(timeout)


@dataclass(kw_only=True, slots=True, eq=False)
class _Answers:
    """What an emitter and the answers that it has started share."""

    providers: Providers
    options: EmitterOptions
    unfinished: dict[_Answer, AnswerSpans] = field(default_factory=dict)
    """The spans to be ended. Only single operations of the dictionary are used, which need no lock."""
    is_closed: bool = False


@dataclass(slots=True, eq=False)
class _Answer:
    """An answer that is being scored."""

    answers: _Answers
    record: RagRecord
    span: SpanAnchor | None
    retrieval_spans: tuple[SpanAnchor | None, ...]

    def finish(self, scored: ScoredRecord) -> None:
        """Write the outcomes on the answer's span and end it; below a span of somebody else's, on evaluation spans."""
        answers = self.answers
        spans = answers.unfinished.pop(self, None)
        if answers.is_closed:
            return
        if spans is not None:
            finish_answer(spans, scored, answers.options)
        elif answers.options.spans == "scores":
            self._add_evaluations(scored)
        self._signal(scored, None if spans is None else spans.answer)

    def late(self, scored: ScoredRecord) -> None:
        """Write the outcomes on evaluation spans below the answer's."""
        if not self.answers.is_closed:
            self._add_evaluations(scored)
            self._signal(scored)

    def abandon(self) -> None:
        """End the spans as they are."""
        spans = self.answers.unfinished.pop(self, None)
        if spans is not None:
            end_answer(spans, self.record)

    def _add_evaluations(self, scored: ScoredRecord) -> None:
        target, answers = self.span or self.record.parent, self.answers
        if target is None or not target.sampled or not is_valid(target):
            return
        for metric, outcome in scored.outcomes.items():
            # An application that asked for nothing but scores is spared several spans for each answer without any.
            if answers.options.spans == "answer" or not isinstance(outcome, NotApplicable):
                add_evaluation(answers.providers.tracer(), target, scored, metric, answers.options)

    def _signal(self, scored: ScoredRecord, own: Span | None = None) -> None:
        """Send events and measurements that point at the answer's span, for exemplars and for the reader of a log.

        The span of an unsampled answer exists nowhere, so nothing points at it, but at the answer's parent.
        """
        providers, options = self.answers.providers, self.answers.options
        is_sampled = self.span is not None and self.span.sampled
        context = context_with((own or self.span) if is_sampled else self.record.parent)
        logger, histogram = providers.event_logger(), providers.score_histogram()
        dimensions = options.dimensions.bounded(scored.record)
        for metric, outcome in scored.outcomes.items():
            if logger is not None and isinstance(outcome, (Score, MetricFailure)):
                _send_event(logger, scored, metric, context, options)
            if isinstance(outcome, Score):
                attributes = {
                    semconv.GEN_AI_EVALUATION_NAME: named(metric),
                    semconv.GEN_AI_EVALUATION_SCORE_LABEL: outcome.label,
                    semconv.JUDGE: outcome.judge and named(outcome.judge),
                    **dimensions,
                }
                histogram.record(float(outcome.value), encodable(attributes), context)


def _send_event(logger: Logger, scored: ScoredRecord, metric: str, context: Context, options: EmitterOptions) -> None:
    record, outcome = scored.record, scored.outcomes[metric]
    judge = outcome.judge if isinstance(outcome, Score) else None
    attributes = {
        **evaluation_result(metric, outcome, options, "events"),
        semconv.RECORD_ID: record.record_id,
        semconv.GEN_AI_RESPONSE_ID: response_id(record),
        **options.dimensions.of(record),
        # The same whenever this judge scores this record: a worker of a fleet may score a record a second time.
        semconv.LOG_RECORD_UID: "/".join(filter(None, [record.record_id, metric, judge])),
    }
    logger.emit(
        timestamp=time.time_ns(),
        context=context,
        event_name=semconv.EVENT_GEN_AI_EVALUATION_RESULT,
        attributes=encodable(attributes),
    )


def _nowhere(_: ScoredRecord) -> None:
    """Nothing is emitted after the emitter's shutdown."""
