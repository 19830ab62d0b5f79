"""The emitter that all backends with scores of their own have in common.

Guarantees:
- `emit` makes the annotations and puts them into a bounded queue: it does no I/O, and waits for none.
- What could be delivered within the retry window is: a span that has not arrived yet, a backend that is away, slow or busy,
  or fails, is tried again with growing pauses. All else is counted by its reason.
- Of two outcomes for the same record and metric the later is the one that remains.
- `flush` and `shutdown` return when their time is up. The child of a fork starts with nothing to deliver, and connects anew.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from ragspan.arguments import FLAG
from ragspan.config import CaptureContent
from ragspan.delivery._retry_queue import DeliveryStatus
from ragspan.delivery.backend import DeliveryOptions, DeliveryStats, Endpoint, ScoreBackend
from ragspan.delivery.batch_sender import BatchSender
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import is_valid
from ragspan.telemetry.base import ScoreEmitter
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.score_attributes import annotator_kind
from ragspan.telemetry.values import error_type, named

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from typing_extensions import Self

_LATEST_NS = 2**63 - 1  # in the year 2262; a record that came as JSON may say anything
_BYTES = 1500  # of an annotation without its explanation


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """A metric's outcome for one answer, in what backends have in common. All texts are bounded and well formed."""

    trace_id: str
    """As 32 hexadecimal digits."""
    span_id: str
    """Of the answer, as 16 hexadecimal digits; or of one of its searches."""
    name: str
    """The metric's."""
    record_id: str
    ended_ns: int
    """When the answer ended, in nanoseconds since 1970: the same whenever it is scored again."""
    value: float | None
    """None for a failure."""
    annotator: str = semconv.ANNOTATOR_CODE
    """OpenInference's word for who judged: `LLM`, or `CODE` where it was no language model."""
    judge: str | None = None
    label: str | None = None
    explanation: str | None = None
    error_type: str | None = None
    """Of a failure."""
    metadata: Mapping[str, Any]
    """What else is known, under the names of `Score`, without those that are None."""
    position: int | None = None
    """0-based, of a document of the span; None for an annotation of the span itself."""

    @property
    def key(self) -> Hashable:
        return self.span_id, self.name, self.record_id, self.position

    @property
    def size(self) -> int:
        return _BYTES + sys.getsizeof(self.explanation)


class WriterOptions(TypedDict, total=False):
    """The arguments of every `ScoreWriter`, which documents them."""

    capture_content: CaptureContent | None
    explanations: bool | None
    max_explanation_chars: int
    failures: bool
    delivery: DeliveryOptions | None
    meter_provider: MeterProvider | None


class ScoreWriter(ScoreEmitter, ABC):
    """Writes the scores of answers to a backend, in the background.

    A derived class says how annotations are written (`connect`). Its arguments are keywords, since they make an equal emitter
    in the helper process of an engine with `export="helper"`.

    Args:
        capture_content: True says that users' texts may stand there, so that explanations may quote them. None asks the
            environment, as `OTelEmitter` does.
        explanations: True writes the judges' explanations as they are, which quote users' texts, and False writes none. None
            asks `RAGSPAN_EXPLANATIONS`, and else writes quotes only where the environment captures content, and elsewhere
            counts and places.
        max_explanation_chars: where they are cut, 1 to 8192.
        failures: also write metrics that failed: the type of the error, never a message.
        delivery: how long scores are retried, and how many may wait.
        meter_provider: where `ragspan.deliveries` goes; None means the global one, whenever it is set.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    name: ClassVar[str]
    """The backend's, in metrics and in the log."""

    score_wait = 0.0
    """An emitter that other emitters need not wait for."""

    endpoint: Endpoint | None = None
    """The server that it writes to, where there is one to be named."""

    needs_span = True
    """Whether it writes to a span, which another emitter makes or finds."""

    _given: Mapping[str, Any]

    def __new__(cls, *_: Any, **given: Any) -> Self:
        writer = super().__new__(cls)
        writer._given = given
        return writer

    def __init__(
        self,
        *,
        capture_content: CaptureContent | None = None,
        explanations: bool | None = None,
        max_explanation_chars: int = 1000,
        failures: bool = False,
        delivery: DeliveryOptions | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._content = ContentPolicy(
            capture_content=capture_content,
            explanations=explanations,
            max_explanation_chars=max_explanation_chars,
        )
        FLAG.check("failures", failures)  # `"false"` is true to Python
        self._failures = failures
        self._meter_provider = meter_provider
        self._sender = self._new_sender(delivery or DeliveryOptions())

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        """An emitter for another process: the same arguments, with nothing to deliver.

        Raises:
            TypeError: it was given a meter provider, which belongs to this process.
        """
        if self._meter_provider is not None:
            raise TypeError("its meter provider belongs to this process; leave it out to use the global one")
        return partial(type(self), **self._given), ()

    @abstractmethod
    def connect(self) -> ScoreBackend[Annotation]:
        """A connection to the backend. Called in the writer's own thread before the first write, and whenever that raised.

        What it raises is treated as if `ScoreBackend.write` had raised it.
        """

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """What to write for these outcomes of an answer that has this span, a valid and sampled one.

        A score each, and a failure each if they are wanted; nothing for a metric that does not apply. Called where answers are
        emitted, usually in the engine's worker, so it does no I/O.
        """
        record_id = named(scored.record.record_id)
        ids: dict[str, Any] = {
            "trace_id": f"{span.trace_id:032x}",
            "span_id": f"{span.span_id:016x}",
            "record_id": record_id,
            "ended_ns": min(max(scored.record.ended_ns, 0), _LATEST_NS),
        }
        items: list[Annotation] = []
        for metric, outcome in scored.outcomes.items():
            if isinstance(outcome, Score):
                about: dict[str, Any] = {
                    "value": float(outcome.value),
                    "annotator": annotator_kind(outcome),
                    "judge": outcome.judge and named(outcome.judge),
                    "label": outcome.label,
                    "explanation": self._content.explanation(outcome),
                    "metadata": _metadata(scored, outcome),
                }
            elif isinstance(outcome, MetricFailure) and self._failures:
                # Never the message: it may quote what a provider or a parser quoted of the user's text.
                kind = error_type(outcome.error_type)
                metadata = {"record_id": record_id, "error_type": kind}
                about = {"value": None, "error_type": kind, "metadata": metadata}
            else:
                continue
            items.append(Annotation(name=named(metric), **ids, **about))
        return items

    @property
    def delivery(self) -> DeliveryOptions:
        """How long scores are retried, and how many may wait; can be changed before anything is emitted."""
        return self._sender.options

    @delivery.setter
    def delivery(self, delivery: DeliveryOptions) -> None:
        self._sender = self._new_sender(delivery)

    def emit(self, scored: ScoredRecord) -> None:
        """Take an answer's outcomes; those of an answer without a sampled span are counted as `no_span`."""
        self.emit_with_status(scored)

    def emit_with_status(self, scored: ScoredRecord) -> DeliveryStatus:
        """The same, for a caller that wants to know what becomes of these outcomes."""
        span = scored.span
        if span is None or not span.sampled or not is_valid(span):
            scores = sum(isinstance(outcome, Score) for outcome in scored.outcomes.values())
            return self._sender.drop(scores, "no_span")
        return self._sender.put(self.items_of(scored, span))

    def flush(self, timeout: float) -> bool:
        """Try everything at once, whatever it waits for.

        Returns:
            True if everything that was emitted before is delivered, or finally rejected, within `timeout` seconds.
        """
        return self._sender.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        """Deliver what is left within `timeout` seconds, count the rest as dropped, and close the connection."""
        self._sender.shutdown(timeout)

    def stats(self) -> DeliveryStats:
        """Where everything is that was emitted."""
        return self._sender.stats()

    def _new_sender(self, delivery: DeliveryOptions) -> BatchSender[Annotation]:
        return BatchSender(delivery, connect=self.connect, name=self.name, meter_provider=self._meter_provider)


def _metadata(scored: ScoredRecord, score: Score) -> dict[str, Any]:
    usage = score.usage
    used = usage and {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
    }
    return present(
        {
            "record_id": named(scored.record.record_id),
            "judge": score.judge and named(score.judge),
            "threshold": score.threshold,
            "prompt_version": score.prompt_version and named(score.prompt_version),
            "fallback": score.fallback and named(score.fallback),
            "late": scored.late or None,
            "refusal": scored.refusal or None,
            "details": {named(name): float(figure) for name, figure in score.details.items()} or None,
            "usage": present(used) if used and used["requests"] else None,
        }
    )


def stable_id(*parts: str) -> str:
    """32 hexadecimal digits, in all processes the same for the same parts: an id that makes a second write harmless."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are not None."""
    return {name: value for name, value in values.items() if value is not None}
