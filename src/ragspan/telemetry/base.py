"""What the engine asks of anything that sends scored records somewhere, and the emitters that other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import requires
from typing import TYPE_CHECKING, Any, Protocol

from ragspan.installed import load_part, part_names
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ragspan.config import CaptureContent

_EMITTERS = "ragspan_emitter"


class AnswerHandle(Protocol):
    """One answer at one emitter, from the start of its scoring on.

    Either `finish` or `abandon` is called, once; after `finish` there may be one `late`. None of them blocks. An exception is
    counted and affects nothing else.
    """

    @property
    def span(self) -> SpanAnchor | None:
        """The answer's span, if this emitter started or found it. Without one the engine asks the next emitter."""
        ...

    @property
    def retrieval_spans(self) -> tuple[SpanAnchor | None, ...]:
        """The span of each of `record.retrievals`, in order, None where it is not known; empty where none is."""
        ...

    def finish(self, scored: ScoredRecord) -> None:
        """Take the outcomes: all metrics have ended, or the wait for them is over."""
        ...

    def late(self, scored: ScoredRecord) -> None:
        """Take the outcomes, and only those, that came after `finish`; `scored.late` is True."""
        ...

    def abandon(self) -> None:
        """Let go of what was started: there will be no outcomes."""
        ...


class Emitter(Protocol):
    """Sends scored records somewhere: to OpenTelemetry, to a backend's own scores, to a list in a test.

    `start` and the handles' methods run in the engine's worker thread, one at a time, in the order of the engine's emitters.
    `flush` and `shutdown` may come from any thread. An exception is counted and affects nothing else.
    """

    @property
    def score_wait(self) -> float:
        """The longest, in seconds, that `finish` may be held back for scores; 0 means no need to wait."""
        ...

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start what this emitter makes of the answer. Comes before any judge is paid."""
        ...

    def flush(self, timeout: float) -> bool:
        """Send what was emitted so far within `timeout` seconds; False if something may be left."""
        ...

    def shutdown(self, timeout: float) -> None:
        """Let go of everything within `timeout` seconds; nothing is emitted afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class EmitHandle:
    """The handle of an emitter that starts nothing: outcomes go to `emit`, late ones as well."""

    emit: Callable[[ScoredRecord], None]
    span: SpanAnchor | None = None
    retrieval_spans: tuple[SpanAnchor | None, ...] = ()

    def finish(self, scored: ScoredRecord) -> None:
        self.emit(scored)

    def late(self, scored: ScoredRecord) -> None:
        self.emit(scored)

    def abandon(self) -> None:
        """Nothing was started."""


class ScoreEmitter:
    """A base for emitters that only take outcomes: derive from it and write `emit`."""

    score_wait: float = 10.0
    """Seconds that an answer waits for its scores; those that come later are emitted by themselves, with `scored.late`."""

    def emit(self, scored: ScoredRecord) -> None:
        """Take a record's outcomes; must not block."""
        raise NotImplementedError

    def start(self, record: RagRecord) -> AnswerHandle:  # noqa: ARG002 - an emitter's signature
        return EmitHandle(self.emit)

    def flush(self, timeout: float) -> bool:  # noqa: ARG002 - likewise
        """True: everything is out."""
        return True

    def shutdown(self, timeout: float) -> None:
        """There is nothing to let go of."""


class BackendEmitter(Emitter, Protocol):
    """An emitter of scores to a backend that takes spans as well; `ragspan.configure` makes it from an address alone."""

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> BackendEmitter:
        """The emitter for the backend at this address, with the same say about users' texts as `OTelEmitter`."""
        ...

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same backend."""
        ...


def installed_emitter(name: str) -> Emitter:
    """A new emitter of the kind that a package registers as `name`; it reads its settings from the environment.

    Raises:
        ConfigurationError: no package registers one, or it cannot be made; the message says why.
    """
    emitter: Emitter = _kind(name)()
    return emitter


def backend_emitter(name: str, address: str, *, capture_content: CaptureContent) -> BackendEmitter:
    """The same for the backend at this address.

    Raises:
        ConfigurationError: as for `installed_emitter`.
    """
    emitter: BackendEmitter = _kind(name).at(address, capture_content=capture_content)
    return emitter


def _kind(name: str) -> Any:
    known = sorted({"otel", "console", *part_names(_EMITTERS)})
    is_ours = any(line.startswith(f"ragspan-{name}") for line in requires("ragspan") or ())
    own = f"; is ragspan-{name} installed?" if is_ours else ""
    return load_part(_EMITTERS, name, f"there is no emitter {name!r} here (there are: {', '.join(known)}){own}")
