"""The export line with exporters that take everything, nothing, only some, or are not there for a while."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest
from brokers import until
from export_parts import carrying, names_of
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from worker_parts import Backend

from ragspan.delivery.spans import PatientSpanExporter
from ragspan.telemetry import is_suppressed
from ragspan_nats.worker import export


def test_what_is_taken_has_been_exported_in_its_order(make_line):
    backend = Backend()
    line = make_line(backend)

    line.put(carrying("a", "b"), carrying("c"))

    until(lambda: line.exported == ["a", "b", "c"])
    assert backend.taken == ["a", "b", "c"]
    assert line.failed == []


def test_records_that_come_together_are_sent_together(make_line):
    backend = Backend()
    line = make_line(backend)

    line.put(*(carrying(str(number)) for number in range(50)))

    until(lambda: len(line.exported) == 50)
    assert len(backend.tries) <= 10


def test_a_batch_is_bounded_by_its_spans_and_no_record_is_torn(make_line):
    backend = Backend()
    line = make_line(backend)

    line.put(*(carrying(*[f"record {number}"] * 100) for number in range(23)), carrying(*["large"] * 700))

    until(lambda: len(line.exported) == 3000)
    assert max(len(names) for names in backend.tries if "large" not in names) == 500
    assert [len(names) for names in backend.tries if "large" in names] == [700]
    assert all(names.count(name) in {100, 700} for names in backend.tries for name in names)


def test_a_record_whose_trace_is_not_sampled_needs_no_export(make_line):
    backend = Backend(lambda names: False)
    line = make_line(backend)
    delivery = carrying()

    line.put(delivery)

    until(lambda: line.ends.deliveries("exported") == [delivery])
    assert backend.tries == []


def test_all_exporters_have_to_take_a_record(make_line):
    one, other = Backend(), Backend(lambda names: len(other.tries) > 2)
    line = make_line(one, other)

    line.put(carrying("a"))

    until(lambda: line.exported == ["a"])
    assert len(other.tries) == 3
    assert other.taken == ["a"]
    assert set(one.taken) == {"a"}


@pytest.mark.parametrize("answer", [False, RuntimeError("a text"), None], ids=["fails", "raises", "says nothing"])
def test_what_is_not_taken_is_tried_again(make_line, answer):
    backend = Backend(lambda names: True if len(backend.tries) > 3 else answer)
    line = make_line(backend)

    line.put(carrying("a"))

    until(lambda: line.exported == ["a"])
    assert len(backend.tries) == 4


def test_what_an_exporter_raises_is_logged_by_its_type(make_line, caplog):
    backend = Backend(lambda names: len(backend.tries) > 5 or RuntimeError("text of a user"))
    line = make_line(backend)

    line.put(carrying("a"))

    until(lambda: line.exported == ["a"])
    assert caplog.messages == ["Backend failed with RuntimeError"]


def test_an_outage_costs_three_tries_and_then_one_after_each_pause(make_line):
    is_back = threading.Event()
    backend = Backend(lambda names: is_back.is_set())
    line = make_line(backend)
    records = [carrying(str(number)) for number in range(200)]
    line.put(*records)

    until(lambda: len(backend.tries) >= 6)
    sizes = [len(names) for names in backend.tries[:6]]
    is_back.set()

    assert sizes[0] > 1
    assert sizes[1:] == [1] * 5
    until(lambda: len(line.exported) == 200)
    assert sorted(line.exported) == sorted(names_of(records))


def test_pauses_grow_up_to_a_limit(make_line, monkeypatch):
    monkeypatch.setattr(export, "_LONGEST_PAUSE", 0.1)
    moments = []
    backend = Backend(lambda names: moments.append(time.monotonic()))
    line = make_line(backend)
    line.put(carrying("a"))

    until(lambda: len(moments) == 9)

    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert [pause >= least for pause, least in zip(pauses, [0.02, 0.04, 0.08, *[0.1] * 5], strict=True)] == [True] * 8


def test_an_outage_is_noticed_anew_after_the_last_one(make_line):
    state = {"up": True}
    backend = Backend(lambda names: state["up"])
    line = make_line(backend)
    for number in range(3):
        state["up"] = False
        line.put(carrying(f"{number} a"), carrying(f"{number} b"))
        tried = len(backend.tries)
        until(lambda tried=tried: len(backend.tries) > tried + 3)
        state["up"] = True
        until(lambda number=number: len(line.exported) == 2 * (number + 1))


def test_patience_ends(make_line):
    backend = Backend(lambda names: False)
    line = make_line(backend, patience=0.2)

    line.put(carrying("a"), carrying("b"))

    until(lambda: sorted(line.failed) == ["a", "b"])
    assert line.exported == []
    tries = len(backend.tries)
    line.put(carrying("c"))  # and the line goes on
    until(lambda: len(backend.tries) > tries)


def test_patience_is_counted_for_each_record_by_itself(make_line):
    backend = Backend(lambda names: "poison" not in names)
    line = make_line(backend, patience=0.3)

    line.put(carrying("poison"))
    until(lambda: len(backend.tries) > 2)
    line.put(carrying("a"))

    until(lambda: line.failed == ["poison"])
    until(lambda: line.exported == ["a"])


def test_a_record_leaves_once(make_line):
    flaky = {"left": 60}

    def takes(names):
        flaky["left"] -= 1
        return flaky["left"] % 3 == 0 or flaky["left"] < 0

    line = make_line(Backend(takes))
    records = [carrying(str(number)) for number in range(100)]
    for record in records:
        line.put(record)
        if int(names_of([record])[0]) % 10 == 0:
            until(lambda: line.exported)

    until(lambda: len(line.exported) == 100)
    assert sorted(line.exported) == sorted(names_of(records))
    assert line.failed == []


class Hanging(SpanExporter):
    """Answers no try before it is shut down."""

    def __init__(self, answer=SpanExportResult.FAILURE):
        self.entered = threading.Event()
        self._is_over = threading.Event()
        self._answer = answer

    def export(self, spans):
        self.entered.set()
        self._is_over.wait(60)
        return self._answer

    def shutdown(self):
        self._is_over.set()


def test_stop_waits_for_a_try_no_longer_than_it_may(make_line):
    exporter = Hanging()
    line = make_line(exporter)
    line.put(carrying("a"))
    assert exporter.entered.wait(20)

    began = time.monotonic()
    line.stop(0.1)

    assert time.monotonic() - began < 10
    assert line.exported + line.failed == []


def test_nothing_is_begun_after_stop(make_line):
    backend = Backend(lambda names: False)
    line = make_line(backend)
    line.put(carrying("a"), carrying("b"))
    until(lambda: len(backend.tries) > 3)

    line.stop(5.0)
    tries = len(backend.tries)
    line.put(carrying("c"))

    assert len(backend.tries) == tries
    assert line.exported + line.failed == []


def test_stop_lets_go_of_all_exporters_whatever_one_of_them_raises(make_line, caplog):
    class Raising(Backend):
        def shutdown(self):
            raise OSError("text")

    last = Backend()
    make_line(Raising(), last).stop(5.0)

    assert last.is_shut_down.is_set()
    assert caplog.messages == ["Raising failed with OSError"]


def test_its_requests_are_not_the_applications(make_line):
    seen = []
    backend = Backend(lambda names: seen.append(is_suppressed()) or True)
    line = make_line(backend)
    line.put(carrying("a"))

    until(lambda: line.exported == ["a"])
    assert seen == [True]


class TestWithAnExporterThatTakesSpansInFirst:
    """Such as that of `OTEL_TRACES_EXPORTER=ragspan_otlp`."""

    @pytest.fixture
    def make_patient(self):
        made = []

        def make(inner):
            made.append(PatientSpanExporter(inner, exit_timeout=0.1))
            return made[-1]

        yield make
        for exporter in made:
            exporter.shutdown()

    @pytest.fixture(autouse=True)
    def quick_flush(self, monkeypatch):
        monkeypatch.setattr(export, "_FLUSH_MILLIS", 300)

    def test_a_record_has_been_exported_once_it_is_flushed(self, make_line, make_patient):
        may_pass = threading.Event()
        backend = Backend(lambda names: may_pass.wait(20))
        line = make_line(make_patient(backend))

        line.put(carrying("a"))
        assert backend.tried.wait(20)
        assert line.exported == []
        may_pass.set()

        until(lambda: line.exported == ["a"])

    def test_what_it_cannot_send_in_time_has_not_been_exported(self, make_line, make_patient):
        is_back = threading.Event()
        backend = Backend(lambda names: is_back.is_set())
        line = make_line(make_patient(backend))

        line.put(carrying("a"))
        until(lambda: len(backend.tries) >= 2)
        assert line.exported + line.failed == []
        is_back.set()

        until(lambda: line.exported == ["a"])
