"""An application with everything to tell that ragspan's metrics can tell, and the files that read them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from ragspan import Budget, RagRecord, ScoringEngine
from ragspan.judges import LLMJudge, OpenAIJudge, OverlapJudge
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.prices import Price
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import ScoredRecord
from ragspan.records import Retrieval, as_contexts
from ragspan.telemetry import OTelEmitter
from ragspan.testing import InMemoryTelemetry, RecordingEmitter
from ragspan.tools import Delivered, DeliveryOptions, Rejected, ScoreWriter, SpanNotFound
from ragspan.tools.http import Endpoint
from ragspan.usage import Usage

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana"
NOBODY = "http://127.0.0.1:9/v1"  # the discard port, where nobody listens

GOOD = {
    "question": "When are card payments settled?",
    "contexts": ["Beta settles card payments after midnight."],
    "response": "Beta settles card payments after midnight.",
    "metadata": {"release": "2.1"},
}
BAD = GOOD | {"response": "Gamma sends invoices by registered mail every Tuesday."}
UNSEEN = GOOD | {"contexts": None}
LOST = BAD | {
    "retrievals": (
        Retrieval(name="search", query="", started_ns=0, ended_ns=1, contexts=as_contexts([BAD["response"]])),
    )
}


@pytest.fixture(scope="session")
def promtool():
    return _found("promtool")


@pytest.fixture(scope="session")
def prometheus():
    return _found("prometheus")


def _found(program):
    path = shutil.which(program)
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(f"{program} is not installed; on Debian and Ubuntu: apt-get install prometheus")
    if path is None:
        pytest.skip(f"{program} is not installed; on Debian and Ubuntu: apt-get install prometheus")
    return path


@pytest.fixture
def dashboard():
    return json.loads((GRAFANA / "ragspan.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Endless:
    """A metric that never comes to an end."""

    name: str = "endless"

    async def score(self, record):
        await asyncio.Event().wait()


class Model:
    """Finds everything grounded but the bad response, and takes half of the prompt from its cache."""

    async def complete(self, messages, *, schema, n, temperature):
        is_bad = any(BAD["response"] in message["content"] for message in messages)
        verdict = "not_grounded" if is_bad else "grounded"
        text = json.dumps({"answer": {"grounding": {"reasoning": "It is stated.", "verdict": verdict}}})
        return [Completion(text=text, usage=Usage(requests=1, input_tokens=900, cached_tokens=450, output_tokens=60))]


class NoAnswer:
    """A capture without anything to score."""

    size_hint = 0

    def to_record(self):
        return None


@dataclass(frozen=True)
class Letter:
    key: str
    size: int = 100


class Writer(ScoreWriter):
    """Writes to a backend that says the same of everything."""

    name = "backend"

    def __init__(self, result, **options):
        super().__init__(**options)
        self.result = result

    def __reduce__(self):
        raise TypeError("it stays where it is")

    def items_of(self, scored, span):
        return [Letter(scored.record.record_id)]

    def server(self):
        return Endpoint(url="http://localhost")

    def write(self, batch):
        return [self.result] * len(batch)


class Shop:
    """Answers are scored, fail, find no judge, no budget, no room; its metrics can be scraped."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.meter_provider = MeterProvider([PrometheusMetricReader(registry=self.registry)], shutdown_on_exit=False)
        self.spans = InMemoryTelemetry()
        self.engines = []
        self.writers = []
        self._scored = threading.Semaphore(0)

    def trade(self):
        """Meet with everything."""
        self.scores_answers()
        self.judges_a_share()
        self.judges_at_a_price()
        self.has_no_judge()
        self.leaves_answers_out()
        self.has_no_room()
        self.delivers_scores()

    def scores_answers(self):
        judge = OverlapJudge()
        metrics = [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]
        engine = self.engine("ragspan", *metrics)
        self.ask(engine, GOOD, BAD, GOOD, BAD, UNSEEN, LOST)
        engine.submit(NoAnswer())

    def judges_a_share(self):
        judge = LLMJudge(Model(), name="large-model", price=Price(1.0, 2.0))
        engine = self.engine("sure", ContextAdherence(judge, polls=1), judge_share="0.81:0.8")
        self.ask(engine, *[GOOD, BAD] * 20)
        self.ask(self.engine("asking", ContextAdherence(judge, polls=1), judge_share="1:0"), GOOD, BAD)

    def judges_at_a_price(self):
        for fallback in ("skip", "overlap"):
            judge = LLMJudge(Model(), name="small-model", price=Price(1.0, 2.0))
            budget = Budget(requests_per_minute=1, fallback=fallback)
            engine = self.engine(f"thrifty, {fallback}", ContextAdherence(judge, polls=1), budget=budget, concurrency=1)
            self.ask(engine, GOOD, GOOD, GOOD)

    def has_no_judge(self):
        judge = OpenAIJudge("small", base_url=NOBODY, api_key="-", max_retries=0)
        self.ask(self.engine("alone", ContextAdherence(judge, polls=1), concurrency=1), *[GOOD] * 8)
        self.ask(self.engine("doubting", ContextAdherence(judge, polls=1), judge_share="1:0"), GOOD, BAD)
        self.ask(self.engine("waiting", Endless(), metric_timeout=0.01), GOOD)

    def leaves_answers_out(self):
        judge = OverlapJudge()
        self.ask(self.engine("sampling", ContextAdherence(judge), sample_rate=0.0), GOOD)
        slowed = self.engine("slowed", ContextAdherence(judge), max_records_per_second=0.001)
        self.ask(slowed, GOOD)
        slowed.submit(RagRecord(**GOOD))

    def has_no_room(self):
        full = self.engine("full", Endless(), queue_size=2, concurrency=1, metric_timeout=600)
        left = self.engine("leaving", Endless(), concurrency=1, metric_timeout=600)
        for engine in (full, left):
            for _ in range(5):
                engine.submit(RagRecord(**GOOD))
        left.shutdown(timeout=0)

    def delivers_scores(self):
        rejected = Rejected("http_400")
        for result, window in ((Delivered(), 600), (rejected, 600), (SpanNotFound(), 0.01)):
            self.writer(result, window).flush(timeout=10)
        self.writer(SpanNotFound(), 600).shutdown(timeout=0)

    def engine(self, name, *metrics, **options):
        emitter = OTelEmitter(
            tracer_provider=self.spans.tracer_provider, meter_provider=self.meter_provider, dimensions=("release",)
        )
        engine = ScoringEngine(
            metrics=metrics,
            emitters=[emitter, RecordingEmitter(on_emit=lambda _: self._scored.release(), keep=False)],
            name=name,
            judging="thread",
            meter_provider=self.meter_provider,
            **options,
        )
        self.engines.append(engine)
        return engine

    def ask(self, engine, *answers):
        """Have answers scored. No engine is flushed: between two scrapes that confuses the exporter, see production.md."""
        for answer in answers:
            engine.submit(RagRecord(**answer))
            assert self._scored.acquire(timeout=30)

    def writer(self, result, window):
        options = DeliveryOptions(linger=0, retry_window=window)
        writer = Writer(result, delivery=options, meter_provider=self.meter_provider)
        self.writers.append(writer)
        anchor = OTelEmitter(tracer_provider=self.spans.tracer_provider).start(record := RagRecord(**GOOD)).span
        writer.emit(ScoredRecord(record=record, outcomes={}, span=anchor))
        return writer

    def close(self):
        for part in (*self.engines, *self.writers):
            part.shutdown(timeout=1)
        self.meter_provider.shutdown()


@pytest.fixture(scope="module")
def shop():
    made = Shop()
    yield made
    made.close()
