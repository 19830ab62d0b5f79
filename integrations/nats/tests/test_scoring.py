"""The verdict on a record decides what is emitted of it, and what was emitted decides how its delivery ends."""

from __future__ import annotations

import asyncio

import pytest
from fakes import InMemoryTelemetry
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from worker_parts import OUTAGE, Backend, a_delivery, a_record, ids_of

from ragspan.config import Settings
from ragspan.defaults import emitters_from
from ragspan.outcomes import Score, ScoredRecord
from ragspan.telemetry import OTelEmitter
from ragspan.testing import RecordingEmitter
from ragspan.throttled_log import ThrottledLog
from ragspan.tools import Delivered, DeliveryOptions, ScoreWriter, SpanNotFound, Unavailable
from ragspan.tools.http import Endpoint
from ragspan_nats import scoring as scoring_module
from ragspan_nats.scoring import FleetScoring
from ragspan_nats.settings import WorkerOptions

OUTCOMES = {"faithfulness": Score(value=0.5), "completeness": OUTAGE}
GOOD = {"faithfulness": Score(value=1.0)}


class Engine:
    """Gives every record these outcomes."""

    def __init__(self, outcomes):
        self.outcomes = outcomes

    async def score(self, capture):
        await asyncio.sleep(0)
        return ScoredRecord(record=capture.to_record(), outcomes=self.outcomes)

    def shutdown(self, timeout):
        pass


class Scoring:
    """What scores records in a worker, with an engine, exporters and emitters of a test's."""

    def __init__(self, exporters, outcomes, options):
        self.part = FleetScoring(Settings(metrics=("context_adherence",)), options, log=ThrottledLog())
        self.part._engine = Engine(outcomes)
        self.part._exporters = exporters
        self._telemetry, self._events = InMemoryTelemetry(), InMemoryLogRecordExporter()
        loggers = LoggerProvider(shutdown_on_exit=False)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._events))
        tracers = self.part._providers.tracer_provider
        self.part._spans = OTelEmitter(
            tracer_provider=tracers, meter_provider=self._telemetry.meter_provider, logger_provider=loggers
        )

    @property
    def events(self):
        return [data.log_record for data in self._events.get_finished_logs()]

    @property
    def measurements(self):
        return [value for _, value in self._telemetry.measurements().get("ragspan.score", [])]

    async def deliver(self, *records, number=1):
        """The verdicts on these records, delivered at the same time, as ending, reason and detail."""
        verdicts = await asyncio.gather(*(self._deliver(record, number) for record in records or [a_record()]))
        return [(verdict.ending, verdict.reason, verdict.detail) for verdict in verdicts]

    async def _deliver(self, record, number):
        delivery = a_delivery(number=number)
        scored = await self.part.score(delivery, record)
        try:
            return await self.part.export(delivery, scored)
        finally:
            self.part.abandon(delivery)


@pytest.fixture
def make(monkeypatch):
    """Makes them."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setattr(scoring_module, "_PAUSE", 0.02)
    monkeypatch.setattr(scoring_module, "_FLUSH", 0.3)
    monkeypatch.setattr(scoring_module, "_LINGER", 0.05)
    made = []

    def make(*exporters, emitters=(), outcomes=GOOD, **options):
        monkeypatch.setattr(scoring_module, "emitters_from", lambda *given: [*emitters_from(*given), *emitters])
        made.append(Scoring(exporters, outcomes, WorkerOptions(**options)))
        return made[-1]

    yield make
    for one in made:
        asyncio.run(one.part.shutdown())


ACKNOWLEDGED = [("acknowledged", None, "")]
FAILED = [("nacked", "export_failed", "the backend did not take all of it in time")]


class TestWhatIsEmitted:
    @pytest.mark.parametrize(("outcomes", "number"), [(OUTCOMES, 1), ({"a": OUTAGE}, 5)])
    async def test_nothing_of_a_record_that_is_not_acknowledged(self, make, outcomes, number):
        other, backend = RecordingEmitter(), Backend()
        scoring = make(backend, emitters=[other], outcomes=outcomes)

        detail = f"1 of {len(outcomes)} metrics failed: APIConnectionError"
        assert await scoring.deliver(number=number) == [("nacked", "judge_outage", detail)]
        assert (backend.tries, other.scored, scoring.events, scoring.measurements) == ([], [], [], [])

    async def test_all_of_one_that_is(self, make):
        other, backend = RecordingEmitter(), Backend()
        scoring = make(backend, emitters=[other], outcomes=OUTCOMES)

        assert await scoring.deliver(number=5) == ACKNOWLEDGED
        (answer,) = (span for span in backend.spans if span.name == "invoke_workflow answer")
        assert answer.attributes["ragspan.score.faithfulness"] == 0.5
        assert answer.attributes["ragspan.error.completeness"] == "APIConnectionError"
        assert answer.attributes["ragspan.delivery.count"] == 5
        assert [event.attributes["log.record.uid"] for event in scoring.events] == [
            "record-1/faithfulness",
            "record-1/completeness",
        ]
        assert {(event.trace_id, event.span_id) for event in scoring.events} == {ids_of([answer])[answer.name]}
        assert scoring.measurements == [0.5]
        assert other.scored[0].outcomes == OUTCOMES

    async def test_another_emitter_that_raises_keeps_nothing_from_the_others(self, make, caplog):
        class Raising(RecordingEmitter):
            def emit(self, scored):
                raise OSError("text")

        last = RecordingEmitter()

        assert await make(Backend(), emitters=[Raising(), last]).deliver() == ACKNOWLEDGED
        assert len(last.scored) == 1
        assert "Raising failed with OSError" in caplog.messages


class TestExport:
    @pytest.mark.parametrize("answer", [False, RuntimeError("a text"), None], ids=["fails", "raises", "says nothing"])
    async def test_what_is_not_taken_is_tried_again(self, make, answer, caplog):
        backend = Backend(lambda names: True if len(backend.tries) > 1 else answer)

        assert await make(backend).deliver() == ACKNOWLEDGED
        assert "text" not in caplog.text

    async def test_a_record_that_is_refused_for_good_holds_no_other_up(self, make):
        backend = Backend(lambda names: "invoke_workflow poison" not in names)
        records = [a_record(f"record-{number}", name="poison" if number == 2 else "a") for number in range(4)]

        scoring = make(backend)
        deliveries = [asyncio.create_task(scoring.deliver(record)) for record in records]
        poison = deliveries.pop(2)

        assert await asyncio.gather(*deliveries) == 3 * [ACKNOWLEDGED]
        assert not poison.done()
        poison.cancel()

    async def test_an_answer_that_is_not_sampled_needs_no_export(self, make, monkeypatch):
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
        backend = Backend(lambda names: False)

        assert await make(backend).deliver() == ACKNOWLEDGED
        assert backend.tries == []


class Scores(ScoreWriter):
    """A writer to a backend of a test's."""

    name = "test"

    def __init__(self, write, **delivery):
        super().__init__(delivery=DeliveryOptions(**{"linger": 0.0, **delivery}))
        self._write = write

    def items_of(self, scored, span):
        return [Item(f"{scored.record.record_id} {metric}") for metric in scored.outcomes]

    def server(self):
        return Endpoint(url="http://localhost")

    def write(self, batch):
        return [self._write(item.key) for item in batch]


class Item:
    size = 1000

    def __init__(self, key):
        self.key = key


class TestNativeScores:
    async def test_a_score_waits_for_its_span_and_others_wait_for_none_but_their_own(self, make):
        tries = []

        def write(key):
            tries.append(key)
            return SpanNotFound() if key.startswith("slow") and len(tries) < 3 else Delivered()

        verdicts = await make(Backend(), emitters=[Scores(write)]).deliver(a_record("slow"), a_record("quick"))
        assert verdicts == 2 * ACKNOWLEDGED
        assert tries.index("quick faithfulness") < len(tries) - 1

    async def test_a_score_that_is_not_taken_in_time_gives_the_record_back(self, make):
        """And whoever waits for it asks a busy backend no more often."""
        tries = []

        def write(key):
            tries.append(key)
            raise Unavailable("http_429", retry_after=60.0)

        assert await make(Backend(), emitters=[Scores(write)], export_retry_timeout=1.0).deliver() == FAILED
        assert len(tries) <= 1  # 0 where a busy machine takes all the time for the spans

    async def test_a_score_whose_span_does_not_turn_up_holds_its_record_up_for_a_while_only(self, make, monkeypatch):
        monkeypatch.setattr(scoring_module, "_MAX_SPAN_WAIT", 0.2)

        assert await make(Backend(), emitters=[Scores(lambda key: SpanNotFound())]).deliver() == ACKNOWLEDGED

    async def test_an_answer_that_a_writer_fails_at_is_given_back_as_such(self, make, caplog):
        writer = Scores(lambda key: Delivered())
        writer.items_of = lambda scored, span: 1 / 0

        assert await make(Backend(), emitters=[writer]).deliver() == [
            ("nacked", "emitter_error", "an emitter raised; the log says what")
        ]
        assert "Scores failed with ZeroDivisionError" in caplog.messages
