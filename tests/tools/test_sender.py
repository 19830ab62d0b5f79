"""The sender with its thread: nothing here sleeps, the scripted tool says when it is reached."""

from __future__ import annotations

import itertools
import logging
import math
import os
import threading
import time

import pytest
from forked import in_child
from measured import points_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from waiting import PATIENCE

from ragspan.outcomes import NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.providers import flush_as_well
from ragspan.tools import BatchRejected, Delivered, DeliveryOptions, Sender, SpanNotFound, Unavailable


class Gate:
    """A reply that comes when the test lets it."""

    def __init__(self):
        self.is_reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, batch):
        self.is_reached.set()
        assert self.opened.wait(PATIENCE)
        return [Delivered()] * len(batch)


def held(post_office, scored):
    """Emit these scores, which are written until the gate is opened."""
    post_office.mailbox.script.append(gate := Gate())
    post_office.emit(scored)
    assert gate.is_reached.wait(PATIENCE)
    return gate


def wait_until(post_office, happened):
    """Wait for a change of what the writer's thread knows."""
    sender = post_office._sender
    with sender._changed:
        assert sender._changed.wait_for(lambda: happened(sender), PATIENCE)


def test_scores_are_delivered_in_a_thread_of_the_writers_own(post_office, make_scored):
    assert post_office.flush(0)
    assert "ragspan-post" not in {thread.name for thread in threading.enumerate()}, "there is nothing to send"
    post_office.emit(make_scored(faithfulness=0.5, completeness=1.0))

    assert post_office.flush(PATIENCE)
    assert post_office.mailbox.delivered == ["faithfulness=0.5", "completeness=1.0"]
    assert post_office.mailbox.threads == {"ragspan-post"}
    assert post_office.stats().delivered == 2


@pytest.mark.parametrize(
    "span",
    [
        None,
        SpanAnchor(trace_id=1, span_id=2, trace_flags=0),
        SpanAnchor(trace_id=0, span_id=2),
        SpanAnchor(trace_id=1, span_id=0),
    ],
    ids=["none", "not sampled", "no trace", "no span"],
)
def test_an_answer_without_a_sampled_span_is_not_written_but_counted(post_office, span, caplog):
    outcomes = {"a": Score(value=1.0), "b": Score(value=0.5), "c": NotApplicable(reason="no_contexts")}
    record = RagRecord(question="q", contexts=[], response="r")

    post_office.emit(ScoredRecord(record=record, outcomes=outcomes, span=span))

    assert post_office.flush(PATIENCE)
    assert post_office.mailbox.batches == []
    assert post_office.stats().dropped == {"no_span": 2}
    assert caplog.messages == []


def test_emit_returns_while_the_destination_hangs(post_office, make_scored):
    gate = held(post_office, make_scored(first=0.1))

    post_office.emit(make_scored(second=0.2))

    assert post_office.stats().waiting == 2
    gate.opened.set()
    assert post_office.flush(PATIENCE)
    assert post_office.mailbox.batches == [["first=0.1"], ["second=0.2"]]


def test_a_flush_does_not_wait_for_the_pause_after_a_failure(post_office, make_scored):
    post_office.mailbox.script += [Unavailable("away", retry_after=60.0), [SpanNotFound()], RuntimeError("500")]
    post_office.emit(make_scored(faithfulness=0.5))
    wait_until(post_office, lambda sender: 10 < sender.next_due() - time.monotonic() < math.inf)

    assert post_office.flush(PATIENCE)
    assert post_office.mailbox.delivered == ["faithfulness=0.5"]


def test_a_thread_waits_while_nothing_is_due(letters):
    looks, is_spinning = itertools.count(), threading.Event()

    def clock():
        if next(looks) == 200:
            is_spinning.set()
        return time.monotonic()

    sender = Sender(DeliveryOptions(linger=PATIENCE), write=lambda _: [Delivered()], name="post", clock=clock)
    sender.put(letters("a"))
    assert not is_spinning.wait(0.1)
    sender.shutdown(PATIENCE)


def test_a_shutdown_waits_for_a_slow_reply_and_tries_all_else_once(make_post_office, make_scored, caplog):
    post_office = make_post_office()
    gate = held(post_office, make_scored(first=0.1))
    post_office.emit(make_scored(second=0.2))
    threading.Timer(0.2, gate.opened.set).start()

    post_office.shutdown(0.05)

    assert post_office.mailbox.delivered == ["first=0.1", "second=0.2"]
    assert caplog.messages == []


def test_a_tool_that_hangs_gets_no_more_than_its_last_seconds(make_post_office, make_scored, caplog):
    post_office = make_post_office()
    post_office.last_seconds = 0.05
    gate = held(post_office, make_scored(first=0.1))
    post_office.emit(make_scored(second=0.2))

    post_office.shutdown(0.05)

    assert (post_office.stats().waiting, post_office.stats().dropped) == (1, {"shutdown": 1})
    assert caplog.messages == ["post: 2 scores not delivered: shutdown"]
    gate.opened.set()
    wait_until(post_office, lambda sender: sender.stats().delivered == 1)
    assert post_office.stats().dropped == {"shutdown": 1}


class Spans:
    """An exporter that knows what the tool was sent before it."""

    def __init__(self, mailbox):
        self.mailbox, self.is_written = mailbox, threading.Event()
        mailbox.script.append(self.take)
        self.batches_before = []

    def take(self, batch):
        self.is_written.set()
        return [Delivered()] * len(batch)

    def force_flush(self, timeout_millis, **_how):
        self.is_written.wait(0.05)  # who does not wait for this comes now
        self.batches_before.append(len(self.mailbox.batches))
        return True


@pytest.mark.parametrize(("linger", "end"), [(0.0, "stats"), (PATIENCE, "flush"), (PATIENCE, "shutdown")])
def test_spans_are_flushed_before_scores_are_tried_at_first_and_at_the_end(make_post_office, make_scored, linger, end):
    post_office = make_post_office(delivery=DeliveryOptions(linger=linger))
    flush_as_well(spans := Spans(post_office.mailbox))
    post_office.emit(make_scored(faithfulness=0.5))

    getattr(post_office, end)(*[PATIENCE] * bool(linger))

    wait_until(post_office, lambda sender: sender.stats().delivered == 1)
    assert (spans.batches_before, post_office.mailbox.delivered) == ([0], ["faithfulness=0.5"])
    assert end != "shutdown" or "ragspan-post" not in [thread.name for thread in threading.enumerate()]


def test_an_exporter_that_hangs_takes_no_more_than_half_of_a_flush(make_post_office, make_scored):
    class Hanging:
        opened = threading.Event()

        def force_flush(self, timeout_millis, **_how):
            self.opened.wait(PATIENCE)

    flush_as_well(hanging := Hanging())
    post_office = make_post_office(delivery=DeliveryOptions(linger=PATIENCE))
    post_office.emit(make_scored(faithfulness=0.5))

    assert post_office.flush(2.0) is True
    assert post_office.mailbox.delivered == ["faithfulness=0.5"]
    hanging.opened.set()


def test_trouble_is_logged_by_its_kind_once_a_minute(post_office, make_scored, caplog):
    post_office.mailbox.script += [
        Unavailable("http_503"),
        ValueError("the user's own words"),
        BatchRejected("http_422"),
        BatchRejected("http_422"),
    ]
    for name in ("first", "second"):
        post_office.emit(make_scored(**{name: 0.5}))
        assert post_office.flush(PATIENCE)

    assert caplog.messages == ["post took no score: http_503; 1 to be tried again", "post: 1 score rejected: http_422"]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_what_became_of_scores_is_told_to_the_metrics(letters):
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)

    def write(batch):
        if any(letter.text == "b" for letter in batch):
            raise BatchRejected("http_422")
        return [Delivered()] * len(batch)

    sender = Sender(DeliveryOptions(), write=write, name="post", meter_provider=meters)

    sender.put(letters("abc"))
    sender.drop(1, "no_span")
    sender.shutdown(PATIENCE)

    points = points_of(reader, "ragspan.deliveries")
    assert {tuple(sorted(point.attributes.items())): point.value for point in points} == {
        (("ragspan.destination", "post"), ("ragspan.result", "delivered")): 2,
        (("ragspan.destination", "post"), ("ragspan.reason", "http_422"), ("ragspan.result", "rejected")): 1,
        (("ragspan.destination", "post"), ("ragspan.reason", "no_span"), ("ragspan.result", "dropped")): 1,
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_starts_with_nothing_to_deliver(post_office, make_scored):
    gate = held(post_office, make_scored(parents=0.1))

    def use():
        post_office.mailbox = type(post_office.mailbox)()
        post_office.emit(make_scored(childs=0.2))
        return [post_office.flush(PATIENCE), post_office.mailbox.delivered]

    assert in_child(use) == [True, ["childs=0.2"]]
    gate.opened.set()
    assert post_office.flush(PATIENCE)
    assert post_office.mailbox.delivered == ["parents=0.1"]
