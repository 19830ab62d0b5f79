"""The emitter that all tools with scores of their own have in common.

`emit` makes the annotations and gives them to the tool's `Sender`: it does no I/O, and waits for none.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.installed import check_extra
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.telemetry.otel_context import is_valid
from ragspan.telemetry.score_attributes import annotator_kind
from ragspan.telemetry.values import clean_name
from ragspan.tools.delivery import DeliveryOptions, DeliveryStats, DeliveryStatus, WriteResult
from ragspan.tools.http import Endpoint, HttpClient
from ragspan.tools.sender import Sender

_LATEST_NS = 2**63 - 1  # in the year 2262; a record that came as JSON may say anything
_BYTES = 1500  # of an annotation without its explanation
_SPENT = ("requests", "input_tokens", "output_tokens", "usd")


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """A metric's outcome for one answer, in what tools have in common. All texts are bounded and well formed."""

    trace_id: str
    """As 32 hexadecimal digits."""
    span_id: str
    """Of the answer, as 16 hexadecimal digits."""
    name: str
    """The metric's."""
    record_id: str
    ended_ns: int
    """When the answer ended, in nanoseconds since 1970: the same whenever it is scored again."""
    value: float
    annotator: str = semconv.ANNOTATOR_CODE
    """OpenInference's word for who judged: `LLM`, or `CODE` where it was not a language model."""
    judge: str | None = None
    label: str | None = None
    explanation: str | None = None
    metadata: Mapping[str, Any]
    """What else is known: `record_id`, `judge`, `threshold`, `prompt_version`, `fallback`, `asked`, `screen`, `late`, `refusal`,
    `details` and `usage`."""

    @property
    def size(self) -> int:
        return _BYTES + sys.getsizeof(self.explanation)


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreWriter(ContentPolicy, ScoreEmitter, ABC):
    """Writes the scores of answers to a tool, in the background.

    It comes after the emitter that makes or finds the answers' spans, which have to go to the same tool, as in
    `emitters=[OTelEmitter(), PhoenixEmitter()]`. A metric without a score is not written. A derived class is a dataclass, too. It says
    where the server is (`server`) and how a batch is written there (`write`).

    Raises:
        ConfigurationError: a key or an address is missing, or an argument or the environment has a value that is not allowed.
    """

    timeout: float = 30.0
    """Seconds, more than 0, that the tool may take to answer a request."""
    delivery: DeliveryOptions = field(default_factory=DeliveryOptions)
    """How long scores are retried, and how many may wait."""

    client: HttpClient = field(init=False)
    """The client of the tool's server."""
    needs_span: bool = field(init=False, default=True)
    """Whether it writes to a span, which another emitter makes or finds."""

    name: ClassVar[str]
    """The tool's, in metrics and in the log."""
    parallel: ClassVar[int | None] = None
    """How many requests are made at the same time, of a tool that takes one annotation a request."""

    score_wait = 0.0  # other emitters need not wait for it
    last_seconds: ClassVar[float] = 10.0
    """How much longer than its timeout `shutdown` may take, where the tool is slow to answer."""

    def __post_init__(self) -> None:
        check_extra(self.name, type(self).__name__)
        self.client = HttpClient(self.server())
        super().__post_init__()
        self._sender: Sender[Annotation] = Sender(
            self.delivery if self.parallel is None else replace(self.delivery, batch_size=1),
            write=self.write,
            write_last=self.write_last,
            name=self.name,
            threads=self.parallel or 1,
            follows_spans=self.needs_span,
        )

    def setting(self, argument: str, *variables: str) -> str:
        """What the argument says, or else the first of these variables that is set, or else a `ConfigurationError`."""
        value: str | None = getattr(self, argument) or variable(*variables)
        if value is None:
            raise ConfigurationError(f"{self.name} needs {argument}: set {variables[0]}, or give {argument}")
        return value

    def address(self, argument: str, *variables: str, default: str) -> tuple[str, str]:
        """The address in the argument or in the first of these variables that is set, after the name of what has it."""
        given = {argument: getattr(self, argument)} | {name: variable(name) for name in variables}
        return next(((name, url) for name, url in given.items() if url is not None), (argument, default))

    @abstractmethod
    def server(self) -> Endpoint:
        """Where the tool is, by the arguments and the environment; raises a `ConfigurationError` if neither says it."""

    @abstractmethod
    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch; what became of each annotation, in order. See `ragspan.tools.sender.Sender`.

        To write an annotation a second time must not make a second one there: a reply may get lost.

        Raises:
            Unavailable: the tool takes nothing at the moment.
            BatchRejected: it will never take this batch as it is.
            Exception: the batch failed as a whole, and may succeed in parts or later.
        """

    def write_last(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write what is left at the end of a shutdown, where there is no other try."""
        return self.write(batch)

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """An annotation for each score of an answer that has this span, a valid and sampled one. Does no I/O."""
        record_id, items = clean_name(scored.record.record_id), list[Annotation]()
        for metric, score in scored.outcomes.items():
            if not isinstance(score, Score):
                continue
            judge = score.judge and clean_name(score.judge)
            spent = {name: getattr(score.usage, name, None) for name in _SPENT}
            metadata = {
                "record_id": record_id,
                "judge": judge,
                "prompt_version": score.prompt_version and clean_name(score.prompt_version),
                "fallback": score.fallback and clean_name(score.fallback),
                "threshold": score.threshold,
                "asked": scored.asked,
                "screen": score.screen and float(score.screen.value),
                "late": scored.late or None,
                "refusal": scored.refusal or None,
                "details": {clean_name(name): float(number) for name, number in score.details.items()} or None,
                "usage": present(spent) if spent["requests"] else None,
            }
            items.append(
                Annotation(
                    trace_id=f"{span.trace_id:032x}",
                    span_id=f"{span.span_id:016x}",
                    name=clean_name(metric),
                    record_id=record_id,
                    ended_ns=min(max(scored.record.ended_ns, 0), _LATEST_NS),
                    value=float(score.value),
                    annotator=annotator_kind(score),
                    judge=judge,
                    label=score.label,
                    explanation=self.explanation(score),
                    metadata=present(metadata),
                )
            )
        return items

    def emit(self, scored: ScoredRecord) -> DeliveryStatus:
        """Take an answer's outcomes, and say what becomes of them; those without a sampled span are counted as `no_span`."""
        span = scored.span
        if span is None or not span.sampled or not is_valid(span):
            return self._sender.drop(sum(isinstance(one, Score) for one in scored.outcomes.values()), "no_span")
        return self._sender.put(self.items_of(scored, span))

    def flush(self, timeout: float) -> bool:
        """Have the spans exported, then try everything at once; True if all is delivered or rejected within `timeout` seconds."""
        return self._sender.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        """Deliver what is left within `timeout` seconds, or `last_seconds` more from a slow tool, and count the rest as dropped."""
        self._sender.shutdown(timeout, more=self.last_seconds)
        self.client.close()

    def stats(self) -> DeliveryStats:
        """Where everything is that was emitted."""
        return self._sender.stats()


def stable_id(*parts: str) -> str:
    """32 hexadecimal digits, in all processes the same for the same parts: an id that makes a second write harmless."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are not None."""
    return {name: value for name, value in values.items() if value is not None}
