"""Deliveries that wait for native writers."""

from __future__ import annotations

import threading

import pytest
from brokers import until
from worker_parts import Ends, a_delivery, a_record, scored

from ragspan.delivery import Delivered, DeliveryOptions, NotThereYet, Refused, ScoreWriter, Unavailable
from ragspan.records import SpanAnchor
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker import confirmation
from ragspan_nats.worker.confirmation import Confirmation

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(confirmation, "_PAUSE", 0.02)
    monkeypatch.setattr(confirmation, "_FLUSH", 0.3)


class Flushing:
    """A writer that says what a test wants it to say."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = 0

    def flush(self, timeout):
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(timeout) if callable(answer) else answer


class Waiting:
    """A `Confirmation`, and what it said."""

    def __init__(self, writers, *, patience=30.0):
        self.ends = Ends()
        self.part = Confirmation(
            writers,
            on_delivered=self.ends.taker("delivered"),
            on_failure=self.ends.taker("failed"),
            patience=patience,
            log=ThrottledLog(),
        )
        self.part.start()

    def put(self, *deliveries):
        for delivery in deliveries:
            self.part.put(delivery)

    @property
    def delivered(self):
        return self.ends.deliveries("delivered")

    @property
    def failed(self):
        return self.ends.deliveries("failed")


@pytest.fixture
def make():
    made = []

    def make(*writers, **options):
        made.append(Waiting(writers, **options))
        return made[-1]

    yield make
    for waiting in made:
        waiting.part.stop()


def test_without_native_writers_nothing_waits_and_no_thread_is_there(make):
    waiting, delivery = make(), a_delivery()

    waiting.put(delivery)

    assert waiting.delivered == [delivery]
    assert not waiting.part._thread.is_alive()


def test_a_delivery_waits_for_every_writer(make):
    may_pass = threading.Event()
    other = Flushing(True)
    waiting, delivery = make(Flushing(lambda _: may_pass.wait(20)), other), a_delivery()

    waiting.put(delivery)
    assert waiting.delivered == []
    may_pass.set()

    until(lambda: waiting.delivered == [delivery])
    assert other.asked == 1


@pytest.mark.parametrize("answers", [(False, False, True), (OSError("x"), True)], ids=["not in time", "raises"])
def test_a_writer_that_has_not_delivered_is_asked_again(make, answers):
    writer = Flushing(*answers)
    waiting, delivery = make(writer), a_delivery()

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])
    assert writer.asked == len(answers)


def test_all_writers_are_asked_whatever_one_of_them_says(make):
    slow, other = Flushing(False, False, True), Flushing(True)
    waiting = make(slow, other)

    waiting.put(a_delivery())

    until(lambda: waiting.delivered)
    assert (slow.asked, other.asked) == (3, 3)


def test_patience_ends(make):
    waiting, deliveries = make(Flushing(False), patience=0.2), [a_delivery(), a_delivery()]

    waiting.put(*deliveries)

    until(lambda: waiting.failed == deliveries)
    assert waiting.delivered == []


def test_what_a_writer_raises_is_logged_by_its_type_and_ends_nothing(make, caplog):
    waiting = make(Flushing(RuntimeError("text of a user"), True, RuntimeError("another"), True))

    for number in (1, 2):
        waiting.put(a_delivery())
        until(lambda number=number: len(waiting.delivered) == number)

    assert caplog.messages == ["a native writer failed with RuntimeError"]


def test_every_delivery_leaves_once(make):
    waiting = make(Flushing(*[False, True] * 500))
    deliveries = [a_delivery() for _ in range(300)]

    for delivery in deliveries:
        waiting.put(delivery)

    until(lambda: len(waiting.delivered) == 300)
    assert waiting.delivered == deliveries
    assert waiting.failed == []


def test_nothing_is_begun_after_stop(make):
    writer = Flushing(False)
    waiting = make(writer)
    waiting.put(a_delivery())
    until(lambda: writer.asked)

    waiting.part.stop()
    waiting.part._thread.join(20)
    asked = writer.asked
    waiting.put(a_delivery())

    assert not waiting.part._thread.is_alive()
    assert writer.asked == asked
    assert waiting.delivered + waiting.failed == []


class Scores(ScoreWriter):
    """A writer of the real kind, to a backend of a test's."""

    name = "test"

    def __init__(self, write, **delivery):
        super().__init__(DeliveryOptions(**{"linger": 0.0, **delivery}))
        self._write = write

    def items_of(self, scored, span):
        return [Item(f"{scored.record.record_id} {metric}") for metric in scored.outcomes]

    def connect(self):
        return self

    def write(self, batch):
        return [self._write(item.key) for item in batch]

    def close(self):
        pass


class Item:
    size = 1000

    def __init__(self, key):
        self.key = key


@pytest.fixture
def make_writer():
    made = []

    def make(write, **delivery):
        made.append(Scores(write, **delivery))
        return made[-1]

    yield make
    for writer in made:
        writer.shutdown(0.1)


def emitted(writer, record_id="record-1", *, span=ANSWER):
    """A delivery whose scores the writer has been given."""
    delivery = a_delivery(a_record(record_id))
    writer.emit(scored(delivery.record, span=span))
    return delivery


@pytest.mark.parametrize("result", [Delivered(), Refused("http_400")], ids=["delivered", "refused for good"])
def test_a_score_that_has_come_to_its_end_is_waited_for_no_longer(make, make_writer, result):
    writer = make_writer(lambda key: result)
    waiting, delivery = make(writer), emitted(writer)

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])


def test_a_score_waits_for_a_backend_that_is_away(make, make_writer):
    is_back = threading.Event()

    def write(key):
        if not is_back.is_set():
            raise Unavailable("down")
        return Delivered()

    writer = make_writer(write)
    waiting, delivery = make(writer), emitted(writer)
    waiting.put(delivery)

    until(lambda: writer.stats().waiting == 1)
    assert waiting.delivered + waiting.failed == []
    is_back.set()
    until(lambda: waiting.delivered == [delivery])


def test_a_score_whose_span_does_not_turn_up_holds_nobody_up_for_long(make, make_writer, monkeypatch):
    monkeypatch.setattr(confirmation, "_SPAN_PATIENCE", 0.2)
    writer = make_writer(lambda key: NotThereYet() if key.startswith("stray") else Delivered())
    waiting = make(writer)
    deliveries = [emitted(writer, record_id) for record_id in ("one", "stray", "two")]

    waiting.put(*deliveries)

    until(lambda: set(waiting.delivered) == set(deliveries))
    assert writer.stats().waiting == 1


def test_a_score_that_the_writer_has_given_up_is_to_be_written_again(make, make_writer):
    """A second flush would have nothing to complain of: what was dropped waits no longer."""
    is_back = threading.Event()

    def write(key):
        if not is_back.is_set():
            raise Unavailable("down")
        return Delivered()

    writer = make_writer(write, retry_window=0.2)
    waiting, lost = make(writer), emitted(writer, "lost")
    waiting.put(lost)

    until(lambda: waiting.failed == [lost])
    assert waiting.delivered == []
    is_back.set()
    later = emitted(writer, "later")
    waiting.put(later)
    until(lambda: waiting.delivered == [later])


def test_a_score_that_gave_way_to_others_is_to_be_written_again(make, make_writer):
    may_pass = threading.Event()
    writer = make_writer(lambda key: may_pass.wait(20) and Delivered(), queue_size=2)
    waiting = make(writer)
    deliveries = [emitted(writer, f"record-{number}") for number in range(4)]
    assert writer.stats().dropped == {"queue_full": 2}

    may_pass.set()
    waiting.put(*deliveries)

    until(lambda: waiting.failed == deliveries)


@pytest.mark.parametrize("reason", ["no_span", "span_not_found"])
def test_a_score_whose_span_nobody_keeps_is_not_judged_again(make, make_writer, reason):
    writer = make_writer(lambda key: NotThereYet(), retry_window=0.2)
    span = None if reason == "no_span" else ANSWER
    waiting, delivery = make(writer), emitted(writer, span=span)

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])
    assert writer.stats().dropped == {reason: 1}
