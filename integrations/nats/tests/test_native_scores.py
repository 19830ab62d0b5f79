"""Records whose scores native writers write, and other emitters besides."""

from __future__ import annotations

import threading

import pytest
from brokers import until
from worker_parts import Ends, LoopThread, a_record, scored

from ragspan.delivery import Delivered, DeliveryOptions, Failed, NotThereYet, Refused, ScoreWriter, Unavailable
from ragspan.records import SpanAnchor
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker import native_scores
from ragspan_nats.worker.native_scores import NativeScores
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.scoring import _for_what_is_in_flight

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(native_scores, "_PAUSE", 0.02)
    monkeypatch.setattr(native_scores, "_FLUSH", 0.3)


class Flushing:
    """An emitter that says what a test wants it to say."""

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
    """`NativeScores`, and what it said."""

    def __init__(self, emitters, *, patience=30.0):
        self.ends = Ends()
        self.loop = LoopThread()
        self.part = NativeScores(
            [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)],
            [emitter for emitter in emitters if not isinstance(emitter, ScoreWriter)],
            timeout=patience,
            log=ThrottledLog(),
        )

    def put(self, *records):
        for record in records:
            self.loop.begin(self._write(record))

    async def _write(self, record):
        failure = await self.part.write(record)
        if failure is None:
            self.ends.taker("delivered")(record)
        else:
            self.ends.taker("failed")(record, *failure)

    @property
    def delivered(self):
        return self.ends.deliveries("delivered")

    @property
    def failed(self):
        return self.ends.deliveries("failed")

    @property
    def reasons(self):
        """Those of what failed."""
        return [reason for reason, _ in self.ends.about("failed")]


@pytest.fixture
def make():
    made = []

    def make(*writers, **options):
        made.append(Waiting(writers, **options))
        return made[-1]

    yield make
    for waiting in made:
        waiting.loop.close()


def test_without_native_writers_nothing_waits_and_no_thread_is_there(make):
    waiting, delivery, threads = make(), exported(), threading.active_count()

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])
    assert threading.active_count() == threads


def test_a_delivery_waits_for_every_emitter(make):
    may_pass = threading.Event()
    other = Flushing(True)
    waiting, delivery = make(Flushing(lambda _: may_pass.wait(20)), other), exported()

    waiting.put(delivery)
    assert waiting.delivered == []
    may_pass.set()

    until(lambda: waiting.delivered == [delivery])
    assert other.asked == 1


@pytest.mark.parametrize("answers", [(False, False, True), (OSError("x"), True)], ids=["not in time", "raises"])
def test_an_emitter_that_has_not_delivered_is_asked_again(make, answers):
    writer = Flushing(*answers)
    waiting, delivery = make(writer), exported()

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])
    assert writer.asked == len(answers)


def test_an_emitter_that_has_delivered_all_is_not_asked_again_while_others_wait(make, make_writer):
    may_pass = threading.Event()
    other = Flushing(True)
    waiting, delivery = make(other, make_writer(lambda key: Delivered() if may_pass.is_set() else Failed())), exported()

    waiting.put(delivery)
    until(lambda: other.asked)
    may_pass.set()
    until(lambda: waiting.delivered == [delivery])

    assert other.asked == 1


def test_all_emitters_are_asked_whatever_one_of_them_says(make):
    slow, other = Flushing(False, False, True), Flushing(True)
    waiting = make(slow, other)

    waiting.put(exported())

    until(lambda: waiting.delivered)
    assert (slow.asked, other.asked) == (3, 3)


def test_patience_ends(make):
    waiting, deliveries = make(Flushing(False), patience=0.2), [exported(), exported()]

    waiting.put(*deliveries)

    until(lambda: waiting.failed == deliveries)
    assert waiting.delivered == []


def test_what_an_emitter_raises_is_logged_by_its_type_and_ends_nothing(make, caplog):
    waiting = make(Flushing(RuntimeError("text of a user"), True, RuntimeError("another"), True))

    for number in (1, 2):
        waiting.put(exported())
        until(lambda number=number: len(waiting.delivered) == number)

    assert caplog.messages == ["Flushing failed with RuntimeError"]


def test_every_delivery_leaves_once(make):
    waiting = make(Flushing(*[False, True] * 500))
    deliveries = [exported() for _ in range(300)]

    for delivery in deliveries:
        waiting.put(delivery)

    until(lambda: len(waiting.delivered) == 300)
    assert {id(one) for one in waiting.delivered} == {id(one) for one in deliveries}
    assert waiting.failed == []


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


def exported(record_id="record-1", *, span=ANSWER):
    """A scored record whose spans are out."""
    return scored(a_record(record_id), span=span)


@pytest.mark.parametrize("result", [Delivered(), Refused("http_400")], ids=["delivered", "refused for good"])
def test_a_score_that_has_come_to_its_end_is_waited_for_no_longer(make, make_writer, result):
    waiting, delivery = make(make_writer(lambda key: result)), exported()

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])


def test_every_writer_gets_the_scores_and_all_of_them_have_to_deliver(make, make_writer):
    may_pass = threading.Event()
    written = []
    slow = make_writer(lambda key: may_pass.wait(20) and Delivered())
    waiting, delivery = make(make_writer(lambda key: written.append(key) or Delivered()), slow), exported()

    waiting.put(delivery)
    until(lambda: written == ["record-1 faithfulness"])
    assert waiting.delivered == []
    may_pass.set()

    until(lambda: waiting.delivered == [delivery])


def test_a_record_waits_for_no_scores_but_its_own(make, make_writer):
    may_pass = threading.Event()

    def write(key):
        return Failed() if key.startswith("slow") and not may_pass.is_set() else Delivered()

    waiting = make(make_writer(write))
    slow, quick = exported("slow"), exported("quick")

    waiting.put(slow, quick)
    until(lambda: waiting.delivered == [quick])
    may_pass.set()

    until(lambda: waiting.delivered == [quick, slow])


def test_a_score_waits_for_a_backend_that_is_away(make, make_writer):
    is_back = threading.Event()

    def write(key):
        if not is_back.is_set():
            raise Unavailable("down")
        return Delivered()

    writer = make_writer(write)
    waiting, delivery = make(writer), exported()
    waiting.put(delivery)

    until(lambda: writer.stats().waiting == 1)
    assert waiting.delivered + waiting.failed == []
    is_back.set()
    until(lambda: waiting.delivered == [delivery])


def test_a_backend_that_asks_to_be_left_alone_is(make, make_writer):
    """Whoever waits for a record is no reason to ask a busy backend more often."""
    tries = []

    def write(key):
        tries.append(key)
        raise Unavailable("http_429", retry_after=60.0)

    waiting = make(make_writer(write), patience=0.5)
    delivery = exported()

    waiting.put(delivery)

    until(lambda: waiting.failed == [delivery])
    assert len(tries) == 1


def test_a_score_whose_span_does_not_turn_up_holds_its_record_up_for_a_while_only(make, make_writer, monkeypatch):
    monkeypatch.setattr(native_scores, "_SPAN_PATIENCE", 0.2)
    writer = make_writer(lambda key: NotThereYet() if key.startswith("stray") else Delivered())
    waiting = make(writer)  # which looks for it again after half a second or more
    one, stray, two = (exported(record_id) for record_id in ("one", "stray", "two"))

    waiting.put(one, stray, two)

    until(lambda: len(waiting.delivered) == 3)
    assert waiting.delivered[-1] is stray
    assert writer.stats().waiting == 1


def test_a_score_that_the_writer_has_given_up_is_to_be_written_again(make, make_writer):
    is_back = threading.Event()

    def write(key):
        if not is_back.is_set():
            raise Unavailable("down")
        return Delivered()

    waiting, lost = make(make_writer(write, retry_window=0.2)), exported("lost")
    waiting.put(lost)

    until(lambda: waiting.failed == [lost])
    assert waiting.delivered == []
    assert waiting.reasons == ["export_failed"]
    is_back.set()
    later = exported("later")
    waiting.put(later)
    until(lambda: waiting.delivered == [later])


def test_only_scores_that_gave_way_to_others_are_to_be_written_again(make, make_writer):
    may_pass = threading.Event()
    writer = make_writer(lambda key: may_pass.wait(20) and Delivered(), queue_size=2, linger=30.0)
    waiting = make(writer)
    deliveries = [exported(f"record-{number}") for number in range(4)]

    waiting.put(*deliveries)
    until(lambda: waiting.failed == deliveries[:2])
    assert writer.stats().dropped == {"queue_full": 2}
    may_pass.set()
    writer.flush(20)

    until(lambda: waiting.delivered == deliveries[2:])


@pytest.mark.parametrize("reason", ["no_span", "span_not_found"])
def test_a_score_whose_span_nobody_keeps_is_not_judged_again(make, make_writer, reason):
    writer = make_writer(lambda key: NotThereYet(), retry_window=0.2)
    waiting, delivery = make(writer), exported(span=None if reason == "no_span" else ANSWER)

    waiting.put(delivery)

    until(lambda: waiting.delivered == [delivery])
    assert writer.stats().dropped == {reason: 1}


def test_an_answer_that_a_writer_fails_at_is_nacked_as_such(make, make_writer, caplog):
    writer = make_writer(lambda key: Delivered())
    writer.items_of = lambda scored, span: 1 / 0
    waiting, delivery = make(writer), exported()

    waiting.put(delivery)

    until(lambda: waiting.failed == [delivery])
    assert waiting.reasons == ["emitter_error"]
    assert caplog.messages == ["Scores failed with ZeroDivisionError"]


def test_writers_are_let_go_of(make, make_writer):
    writer = make_writer(lambda key: Delivered(), linger=30.0)
    waiting = make(writer)
    waiting.put(exported())
    until(lambda: writer.stats().waiting == 1)

    waiting.loop.run(waiting.part.shutdown(20.0))

    assert writer.stats().delivered == 1
    assert writer.emit_with_receipt(exported()).fate() == "lost"


def test_a_writer_holds_for_as_long_whatever_its_worker_holds():
    """Else it would give scores up that the worker keeps for it, and they would be judged again."""
    options = WorkerOptions(max_in_flight=1000, export_retry_timeout=3600.0)
    delivery = _for_what_is_in_flight(DeliveryOptions(), options)

    assert delivery.queue_size > 1000 * 8 * 10  # eight metrics, ten passages
    assert delivery.queue_bytes > 1000 * 200_000
    assert delivery.retry_window > 3600.0
    assert delivery.linger < 1.0
