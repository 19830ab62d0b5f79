"""The log that integrations note a request in, and the requests that are open."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import pytest

import ragspan
from ragspan import RagRecord
from ragspan.capturing.log import TokenStream
from ragspan.capturing.requests import EndedRuns, OpenRequests


def words_of_all_events(log):
    said = [event.payload for event in log.history if event.kind == "said"]
    return RagRecord(
        question=None, contexts=None, response=" ".join(said), status="aborted" if log.abandoned else "complete"
    )


class KeepingSink:
    """Keeps captures, and makes the records when it is asked."""

    def __init__(self):
        self.captures = []

    def submit(self, capture):
        self.captures.append(capture)

    def records(self):
        return [capture.to_record() for capture in self.captures]


@pytest.fixture
def sink():
    return KeepingSink()


@pytest.fixture
def requests(sink):
    return OpenRequests(sink, words_of_all_events)


def begun(requests, key=1):
    log = requests.begin()
    log.root = key
    requests.follow(log, key, log)
    return log


def test_a_request_becomes_a_record_of_what_was_noted_in_order(requests, sink):
    log = begun(requests)
    for word in ("At", "night."):
        log.note("said", 1, payload=word)
    requests.finish(log)

    (record,) = sink.records()
    assert record.response == "At night."
    assert log.ended_ns >= log.history[-1].time_ns >= log.started_ns


def test_who_ends_a_request_second_hands_nothing_over(requests, sink):
    log = begun(requests)
    threads = [threading.Thread(target=requests.finish, args=(log,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(sink.records()) == 1


def test_the_runs_of_a_request_that_is_over_are_no_longer_live_and_known_to_have_ended(requests):
    log = begun(requests, "root")
    requests.follow(log, 2, log)
    assert "root" not in requests.ended
    requests.finish(log)

    assert requests.live == {}
    assert "root" in requests.ended
    assert 2 in requests.ended


def test_a_run_that_begins_while_its_request_ends_is_not_followed(requests):
    log = begun(requests)
    requests.finish(log)
    requests.follow(log, 2, log)

    assert requests.live == {}


def test_documents_live_as_long_as_the_request_and_not_as_long_as_its_capture(requests, sink):
    class Document:
        pass

    log, document = begun(requests), Document()
    log.kept[id(document)] = (document, "its text")
    reference = weakref.ref(document)
    del document
    gc.collect()
    assert reference() is not None

    requests.finish(log)
    gc.collect()
    assert reference() is None
    assert sink.captures


def test_the_size_counts_each_text_once_and_each_token(requests, sink):
    text = "page " * 20_000
    log = begun(requests)
    log.texts[id(text)] = text
    log.texts[id(text)] = text
    log.streams[1] = TokenStream()
    log.streams[1].tokens += ["word"] * 100
    requests.finish(log)

    (capture,) = sink.captures
    assert 100_000 + 100 * 50 < capture.size_hint < 107_000


def test_a_request_that_goes_on_is_as_large_as_with_its_beginning(requests, sink):
    text = "page " * 20_000
    first, second = begun(requests), begun(requests, 2)
    first.texts[id(text)] = text
    requests.finish(first)
    second.earlier = (first,)
    requests.finish(second)

    assert sink.captures[1].size_hint >= 100_000


def test_the_span_of_another_instrumentation_is_found_as_soon_as_it_is_there(requests):
    anchors = iter([None, None, "its span"])
    log = requests.begin()
    log.look_for_span(lambda: next(anchors))
    log.find_span()
    assert log.anchor is None

    log.find_span()
    log.find_span()
    assert log.anchor == "its span"


def test_requests_inside_a_block_are_one_and_make_no_record_of_their_own(requests, sink):
    with ragspan.capture("When?", sink=sink):
        log = requests.begin()
        log.note("said", 1, payload="At night.")
        assert requests.begin() is log
        requests.finish(log)
        assert sink.captures == []

    (record,) = sink.records()
    assert (record.question, record.response) == ("When?", "At night.")


def test_documents_can_be_read_once_more_when_a_request_ends(sink):
    def note_documents(log):
        for document, _ in log.kept.values():
            log.note("said", 1, payload=document)

    requests = OpenRequests(sink, words_of_all_events, on_end=note_documents)
    log = begun(requests)
    log.kept[1] = ("At night.", None)
    requests.finish(log)

    assert [record.response for record in sink.records()] == ["At night."]


def test_a_sink_that_raises_costs_the_request_nothing():
    class BrokenSink:
        def __init__(self):
            self.errors = []

        def submit(self, capture):
            raise OSError("no room")

        def count_error(self, place):
            self.errors.append(place)

    requests = OpenRequests(BrokenSink(), words_of_all_events)
    requests.finish(begun(requests))

    assert requests.sink.errors == ["callback"]
    assert requests.live == {}


# Requests that never end


def test_the_oldest_request_is_given_up_when_too_many_are_open(sink):
    requests = OpenRequests(sink, words_of_all_events, max_open=2)
    logs = [begun(requests, key) for key in range(3)]

    assert [log.over for log in logs] == [True, False, False]
    assert [record.status for record in sink.records()] == ["aborted"]


def test_a_request_in_which_nothing_happens_is_given_up_when_the_next_one_begins(sink):
    requests = OpenRequests(sink, words_of_all_events, max_seconds=0, sweep_seconds=0)
    still = begun(requests)
    begun(requests, 2)

    assert still.over
    assert [record.status for record in sink.records()] == ["aborted"]


def test_a_request_with_runs_without_end_is_given_up(requests, sink):
    log = begun(requests)
    for key in range(2, 50_002):
        requests.follow(log, key, log)

    assert [record.status for record in sink.records()] == ["aborted"]
    assert requests.live == {}


def test_requests_that_are_discarded_make_no_record(requests, sink):
    log = begun(requests)
    requests.discard()
    requests.finish(log)

    assert sink.captures == []
    assert requests.live == {}


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
    assert "ConnectionError" in caplog.text
    assert "secret" not in caplog.text
