"""The protocol of emitters, which send scored records somewhere, and the emitters of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ragspan.arguments import meant
from ragspan.installed import load_part, part_names
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ragspan.config import CaptureContent

_EMITTERS = "ragspan_emitter"


class AnswerHandle(Protocol):
    """One answer at one emitter, from the start of its scoring.

    Either `finish` or `abandon` is called, once. `late` may follow `finish`, once. None of them may block. Exceptions are
    counted and have no other effect.
    """

    @property
    def span(self) -> SpanAnchor | None:
        """The answer's span, if this emitter started or found it. If not, the engine asks the next emitter."""
        ...

    def finish(self, scored: ScoredRecord) -> None:
        """Take the outcomes. All metrics have ended, or the time for them is over."""
        ...

    def late(self, scored: ScoredRecord) -> None:
        """Take only the outcomes that came after `finish`; `scored.late` is True."""
        ...

    def abandon(self) -> None:
        """End what was started: there will be no outcomes."""
        ...


class Emitter(Protocol):
    """Sends scored records somewhere: to OpenTelemetry, to a backend's own scores, to a list in a test.

    `start` and the handles' methods run in the engine's worker thread, one at a time, in the order of the engine's emitters.
    `flush` and `shutdown` may be called from any thread. Exceptions are counted and have no other effect.
    """

    @property
    def score_wait(self) -> float:
        """Seconds that `finish` waits for scores at most; 0 means that it does not wait."""
        ...

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start this emitter's part of the answer, such as a span. Called before any judge is paid."""
        ...

    def flush(self, timeout: float) -> bool:
        """Send what was emitted so far within `timeout` seconds; False if something may be left."""
        ...

    def shutdown(self, timeout: float) -> None:
        """Close everything within `timeout` seconds; nothing is emitted afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class EmitHandle:
    """The handle of an emitter that starts nothing: all outcomes go to `emit`."""

    emit: Callable[[ScoredRecord], None]
    span: SpanAnchor | None = None

    def finish(self, scored: ScoredRecord) -> None:
        self.emit(scored)

    def late(self, scored: ScoredRecord) -> None:
        self.emit(scored)

    def abandon(self) -> None:
        """Nothing was started."""


class ScoreEmitter:
    """A base for emitters that only take outcomes: derive from it and write `emit`."""

    score_wait: float = 10.0
    """Seconds that an answer waits for its scores; later ones are emitted by themselves, with `scored.late`."""

    def emit(self, scored: ScoredRecord) -> None:
        """Take a record's outcomes; must not block."""
        raise NotImplementedError

    def start(self, record: RagRecord) -> AnswerHandle:  # noqa: ARG002 - an emitter's signature
        return EmitHandle(self.emit)

    def flush(self, timeout: float) -> bool:  # noqa: ARG002 - likewise
        """True: nothing waits here."""
        return True

    def shutdown(self, timeout: float) -> None:
        """There is nothing to close."""


class BackendEmitter(Emitter, Protocol):
    """An emitter of scores to a backend that also takes spans; `ragspan.configure` needs only its address."""

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent | None) -> BackendEmitter:
        """The emitter for the backend at this address; `capture_content` as in `OTelEmitter`."""
        ...

    def span_exporter(self) -> SpanExporter:
        """An exporter that sends spans to the same backend."""
        ...


def installed_emitter(name: str) -> Emitter:
    """A new emitter of the class that a package registers as `name`; raises like `emitter_class`, or what its settings raise."""
    emitter: Emitter = emitter_class(name)()
    return emitter


def emitter_class(name: str) -> Any:
    """The class that a package registers as `name`: an `Emitter`, a `BackendEmitter` if it can be made from an address.

    Raises:
        ConfigurationError: no package registers one, or it cannot be imported.
    """
    known = sorted({"otel", "console", *part_names(_EMITTERS)})
    return load_part(
        _EMITTERS, name, f"there is no emitter {name!r} here{meant(name, known)}; there are: {', '.join(known)}"
    )
