"""The protocol of emitters, which send scored records somewhere, and the emitters of other packages."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from ragspan.arguments import meant
from ragspan.installed import load_part, part_names
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor

_EMITTERS = "ragspan_emitter"
Engine: TypeAlias = Any
"""An engine as its emitters see it, for one that has the method `is_used_by(engine)`."""


class AnswerHandle(Protocol):
    """One answer at one emitter, from the start of its scoring.

    Either `finish` or `abandon` is called, once. `late` may follow `finish`, once. None of them may block. Exceptions are
    counted and have no other effect.
    """

    @property
    def span(self) -> SpanAnchor | None:
        """The answer's span, if this emitter started or found it. If not, the engine asks the next emitter."""

    def finish(self, scored: ScoredRecord) -> None:
        """Take the outcomes. All metrics have ended, or the time for them is over."""

    def late(self, scored: ScoredRecord) -> None:
        """Take only the outcomes that came after `finish`; `scored.late` is True."""

    def abandon(self) -> None:
        """End what was started: there will be no outcomes."""


class Emitter(Protocol):
    """Sends scored records somewhere: to OpenTelemetry, to a backend's own scores, to a list in a test.

    `start` and the handles' methods run in the engine's worker thread, one at a time, in the order of the engine's emitters.
    `flush` and `shutdown` may be called from any thread. Exceptions are counted and have no other effect.
    """

    @property
    def score_wait(self) -> float:
        """Seconds that `finish` waits for scores at most; 0 means that it does not wait."""

    def start(self, record: RagRecord) -> AnswerHandle:
        """Start this emitter's part of the answer, such as a span. Called before any judge is paid."""

    def flush(self, timeout: float) -> bool:
        """Send what was emitted so far within `timeout` seconds; False if something may be left."""

    def shutdown(self, timeout: float) -> None:
        """Close everything within `timeout` seconds; nothing is emitted afterwards."""


class ScoreEmitter:
    """A base for emitters that only take outcomes: derive from it and write `emit`. It starts nothing, so it is its own handle."""

    score_wait: float = 10.0
    """Seconds that an answer waits for its scores; later ones are emitted by themselves, with `scored.late`."""
    span: SpanAnchor | None = None
    holds_scores: bool = True
    """False where nobody would pay a judge for this emitter alone."""

    def emit(self, scored: ScoredRecord) -> object:
        """Take a record's outcomes; must not block. What it returns has no effect."""
        raise NotImplementedError

    def start(self, record: RagRecord) -> AnswerHandle:  # noqa: ARG002 - an emitter's signature
        return self

    def finish(self, scored: ScoredRecord) -> None:
        self.emit(scored)

    late = finish

    def abandon(self) -> None:
        """Nothing was started."""

    def flush(self, timeout: float) -> bool:  # noqa: ARG002 - likewise
        """True: nothing waits here."""
        return True

    def shutdown(self, timeout: float) -> None:
        """There is nothing to close."""


def emitter_class(name: str) -> Any:
    """The class of emitters that a package registers as `name`; one of a tool that takes spans has a method `span_exporter()`.

    Raises:
        ConfigurationError: no package registers one, or it cannot be imported.
    """
    known = sorted({"otel", "console", *part_names(_EMITTERS)})
    missing = f"there is no emitter {name!r} here (by emitters or RAGSPAN_EMITTERS){meant(name, known)}; there are: {', '.join(known)}"
    return load_part(_EMITTERS, name, missing)
