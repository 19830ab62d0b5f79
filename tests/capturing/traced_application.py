"""An application that is traced already, and whose answers are scored; of no framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from captures import Answered
from fakes import FakeJudge, InMemoryTelemetry
from opentelemetry.sdk.trace import ReadableSpan

from ragspan import ScoredRecord, ScoringEngine
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import Outcome
from ragspan.telemetry import OTelEmitter
from ragspan.testing import RecordingEmitter

SCORE = "evaluation context_adherence"


class Application:
    """A traced application, whose answers are scored; `spans` says how."""

    def __init__(self, spans: Any = "scores", *, tracer_provider: Any = None) -> None:
        self.telemetry = InMemoryTelemetry()
        self.provider = self.telemetry.tracer_provider
        self.tracer = self.provider.get_tracer("application")
        self.seen = RecordingEmitter()
        emitter = OTelEmitter(spans=spans, tracer_provider=tracer_provider or self.provider)
        self.engine = ScoringEngine(metrics=[ContextAdherence(FakeJudge())], emitters=[emitter, self.seen])

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        assert self.engine.flush(timeout=60)
        return [span for span in self.telemetry.spans() if name is None or span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def drawn_by_ragspan(self) -> list[str]:
        return [span.name for span in self.spans() if span.instrumentation_scope.name == "ragspan"]

    def scored_spans(self) -> list[str]:
        """The name of the span that each score hangs below, which is in the same trace; nothing else may be drawn."""
        by_id = {span.context.span_id: span for span in self.spans()}
        scores = self.spans(SCORE)
        assert self.drawn_by_ragspan() == [SCORE] * len(scores)
        parents = [by_id[score.parent.span_id] for score in scores]
        assert [score.context.trace_id for score in scores] == [parent.context.trace_id for parent in parents]
        assert [score.links[0].context.span_id for score in scores] == [parent.context.span_id for parent in parents]
        return sorted(parent.name for parent in parents)

    def scored(self) -> Sequence[ScoredRecord]:
        assert self.engine.flush(timeout=60)
        return self.seen.scored

    def answers(self) -> list[Answered]:
        return [Answered.of(scored.record) for scored in self.scored()]

    def outcomes(self) -> list[Outcome]:
        return [scored.outcomes["context_adherence"] for scored in self.scored()]

    def targets(self) -> list[tuple[int, int]]:
        """The answers' spans, as other emitters are told of them."""
        return [(scored.span.trace_id, scored.span.span_id) for scored in self.scored()]


@pytest.fixture
def new_application() -> Iterator[Callable[..., Application]]:
    """Makes applications that are traced already, and whose answers are scored."""
    made: list[Application] = []

    def make(*arguments: Any, **options: Any) -> Application:
        made.append(Application(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.engine.shutdown(timeout=10)


@pytest.fixture
def application(new_application: Callable[..., Application]) -> Application:
    return new_application()


def ids(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id
