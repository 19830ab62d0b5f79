"""The log that integrations note a request in, and the requests that are open."""

from __future__ import annotations

import logging
import sys
import weakref

import pytest
from captures import CollectingSink

from ragspan import RagRecord
from ragspan.capturing import open_requests
from ragspan.capturing.log import EventKind, NestedLog, RequestLog, TokenStream
from ragspan.capturing.open_requests import EndedRuns, OpenRequests
from ragspan.safe_copy import PART_BYTES
from ragspan.telemetry import suppressed


def status_of(log):
    return RagRecord(question=None, contexts=None, response=None, status="aborted" if log.abandoned else "complete")


def statuses(sink):
    return [capture.to_record().status for capture in sink.take()]


@pytest.fixture
def sink():
    return CollectingSink()


@pytest.fixture
def requests(sink):
    return OpenRequests(sink, status_of)


def begun(requests, key=1):
    log = requests.begin(key, requests.within())
    log.root = key
    requests.follow(log, key, log)
    return log


def test_a_sink_that_raises_costs_the_request_nothing():
    class BrokenSink:
        def __init__(self):
            self.errors = []

        def submit(self, capture):
            raise OSError("no room")

        def count_error(self, place):
            self.errors.append(place)

    requests = OpenRequests(BrokenSink(), status_of)
    requests.finish(begun(requests))

    assert requests.sink.errors == ["callback"]
    assert requests.live == {}


def test_what_a_request_held_of_the_programs_is_let_go_with_its_end(requests, sink):
    class Document:
        pass

    document = Document()
    log, gone = begun(requests), weakref.ref(document)
    log.kept[id(document)] = document, "its snapshot"
    del document
    assert gone() is not None

    requests.finish(log)

    assert gone() is None
    assert sink.captures == [log]


def test_what_runs_with_instrumentation_suppressed_is_no_request(requests):
    with suppressed():
        assert requests.begin(1, None) is None
    assert requests.begin(1, None) is not None


def test_the_size_of_a_request_is_that_of_its_texts_and_parts_and_of_the_requests_that_it_continues():
    log, earlier = RequestLog(), RequestLog()
    for text in ("a question", "a question", "an answer"):
        log.count(text)
    log.note(EventKind.START, 1, payload="a question")
    log.keys.append(1)
    log.parts, log.streams[1] = 5, TokenStream()
    log.streams[1].tokens += ["an ", "answer"]
    log.nested[1] = NestedLog(RequestLog(), earlier.kept.update, {})
    log.nested[1].log.bytes, earlier.bytes = 1000, 2000
    log.release()

    own = sys.getsizeof("a question") + sys.getsizeof("an answer") + PART_BYTES * (5 + 4 + 1 + 2)
    assert (log.size_hint, log.texts) == (own + 1000, {})
    log.earlier = (earlier, earlier)
    assert log.size_hint == own + 1000 + 4000


# Requests that never end


def test_the_oldest_request_is_given_up_when_too_many_are_open(requests, sink, monkeypatch):
    monkeypatch.setattr(open_requests, "_MAX_OPEN", 2)
    logs = [begun(requests, key) for key in range(3)]

    assert [log.over for log in logs] == [True, False, False]
    assert statuses(sink) == ["aborted"]


def test_a_request_that_goes_on_for_too_long_is_given_up_when_the_next_one_begins(requests, sink, monkeypatch):
    old, young = begun(requests), begun(requests, 2)
    old.started_ns, young.started_ns = (
        log.started_ns - 4 * 3600 * 10**9 - ago for log, ago in ((old, 1), (young, -60 * 10**9))
    )
    monkeypatch.setattr(open_requests, "_NS_BETWEEN_LOOKS", 0)
    requests._next_look_ns = 0
    begun(requests, 3)

    assert (old.over, young.over) == (True, False)
    assert statuses(sink) == ["aborted"]


def test_a_request_with_runs_without_end_is_given_up(requests, sink):
    log = begun(requests)
    for key in range(2, 50_001):
        requests.follow(log, key, log)
    assert not log.over
    requests.follow(log, 50_001, log)

    assert statuses(sink) == ["aborted"]
    assert requests.live == {}


def test_what_is_forgotten_is_over_and_submits_nothing(requests, sink):
    log = begun(requests)
    requests.discard()
    requests.finish(log)

    assert (log.over, requests.live, sink.captures) == (True, {}, [])


def test_ended_runs_are_known_for_a_while_in_a_fixed_amount_of_memory():
    ended = EndedRuns()
    for first in range(0, 100_000, 1000):
        ended.add_all(range(first, first + 1000))

    assert 99_999 in ended
    assert 1 not in ended


def test_an_error_in_a_callback_is_logged_by_its_type_and_counted(requests, sink, caplog):
    sink.count_error = (counted := []).append
    with caplog.at_level(logging.WARNING):
        requests.report(ConnectionError("secret"))

    assert counted == ["callback"]
    assert caplog.messages == ["a callback of ragspan failed with ConnectionError"]
