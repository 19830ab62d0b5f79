"""Scores on their way to a Phoenix that is there, not there, slow, or of another mind."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading

import pytest
import requests

from ragspan import ConfigurationError
from ragspan.delivery import DeliveryOptions
from ragspan.outcomes import Score
from ragspan.records import SpanAnchor
from ragspan.telemetry import is_suppressed
from ragspan_phoenix import PhoenixAnnotations

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)
OTHER = SpanAnchor(trace_id=0xA1, span_id=0xB3)
PATIENCE = 20.0


def names(phoenix):
    return sorted(row["name"] for row in phoenix.rows)


def test_scores_arrive_with_their_verdicts_on_documents(phoenix, make_emitter, make_scored, utilization):
    emitter = make_emitter()
    emitter.emit(make_scored({"faithfulness": Score(value=0.5), "context_utilization": utilization}))

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["context_utilization"] * 3 + ["faithfulness"]
    assert [path for path, _ in phoenix.requests] == ["/v1/span_annotations", "/v1/document_annotations"]
    assert emitter.stats().delivered == 4


def test_a_second_scoring_of_a_record_replaces_the_first(phoenix, make_emitter, make_scored, utilization):
    for value in (0.25, 0.75):
        emitter = make_emitter()
        emitter.emit(make_scored({"faithfulness": Score(value=value), "context_utilization": utilization}))
        assert emitter.flush(PATIENCE)

    assert len(phoenix.rows) == 4
    assert [row["result"]["score"] for row in phoenix.rows if row["name"] == "faithfulness"] == [0.75]


def test_what_phoenix_does_not_have_yet_waits_and_holds_nobody_up(phoenix, make_emitter, make_scored):
    emitter = make_emitter()
    emitter.emit(make_scored({"early": Score(value=0.5)}, span=OTHER))
    emitter.emit(make_scored({"here": Score(value=0.5)}))

    assert emitter.flush(0.5) is False
    assert names(phoenix) == ["here"]
    phoenix.add_spans(OTHER)
    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["early", "here"]


def test_a_document_that_the_span_does_not_have_is_refused_alone(phoenix, make_emitter, make_scored, utilization):
    phoenix.add_spans(SpanAnchor(trace_id=0xA1, span_id=0xC3), documents=2)
    emitter = make_emitter()
    emitter.emit(make_scored({"context_utilization": utilization}))

    assert emitter.flush(PATIENCE)
    assert sorted(str(row.get("document_position")) for row in phoenix.rows) == ["1", "None"]
    assert emitter.stats().rejected == {"no_such_document": 1}


def test_a_row_for_whose_sake_a_batch_is_refused_costs_the_others_nothing(phoenix, make_emitter, make_scored):
    def is_reserved(rows):
        return (400, "The name 'note' is reserved") if any(row["name"] == "note" for row in rows) else None

    phoenix.script.extend([is_reserved] * 20)
    emitter = make_emitter()
    emitter.emit(make_scored({name: Score(value=0.5) for name in ("a", "b", "note", "c", "d")}))

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["a", "b", "c", "d"]
    assert emitter.stats().rejected == {"http_400": 1}


@pytest.mark.parametrize(
    "trouble",
    [
        500,
        503,
        (429, "", {"Retry-After": "0"}),
        401,
        507,
        404,
        (302, "", {"Location": "/login"}),
        (200, "<html>Please log in</html>"),
        (200, '{"data":[]}'),
    ],
    ids=str,
)
def test_what_phoenix_does_not_take_now_is_tried_again(phoenix, make_emitter, make_scored, trouble):
    phoenix.script.append(trouble)
    emitter = make_emitter()
    emitter.emit(make_scored())

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["faithfulness"]
    assert len(phoenix.requests) == 2


def test_a_phoenix_that_is_down_at_the_start_gets_everything_later(phoenix, make_emitter, make_scored):
    phoenix.stop()
    emitter = make_emitter()
    emitter.emit(make_scored())
    assert emitter.flush(0.3) is False

    phoenix.start()
    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["faithfulness"]


def test_a_phoenix_that_does_not_answer_in_time_is_asked_again(phoenix, make_emitter, make_scored):
    phoenix.script.append(phoenix.hangs)
    emitter = make_emitter(timeout=0.2)
    emitter.emit(make_scored())

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["faithfulness"]


def test_a_key_is_shown_and_written_nowhere(phoenix, make_emitter, make_scored, caplog):
    phoenix.script.extend([401, 500, (400, "no")])
    emitter = make_emitter(api_key="secret-key", headers={"X-Team": "rag"})
    emitter.emit(make_scored())
    emitter.flush(PATIENCE)

    assert phoenix.headers[0]["authorization"] == "Bearer secret-key"
    assert phoenix.headers[0]["x-team"] == "rag"
    assert caplog.messages
    assert "secret" not in caplog.text + repr(emitter) + repr(emitter.client.endpoint)


def test_its_requests_are_not_the_applications(phoenix, make_emitter, make_scored, caplog):
    caplog.set_level(logging.INFO)
    phoenix.script.append((404, "Spans with IDs 00000000000000b2 do not exist."))

    """An instrumentation of Requests asks whether it should look away, and a log at level INFO shows none of them."""
    seen, send = [], requests.Session.send

    def watching(session, request, **arguments):
        seen.append((threading.current_thread().name, is_suppressed()))
        return send(session, request, **arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "send", watching)
        emitter = make_emitter()
        emitter.emit(make_scored())
        assert emitter.flush(PATIENCE)

    assert set(seen) == {("ragspan-phoenix", True)}
    assert caplog.messages == []


def test_it_travels_to_a_helper_process_with_all_that_it_was_told(phoenix, make_emitter, make_scored):
    delivery = DeliveryOptions(retry_window=60.0)
    emitter = make_emitter(api_key="secret-key", identifier="mine", documents=False, delivery=delivery, timeout=3.0)

    copy = pickle.loads(pickle.dumps(emitter))
    try:
        copy.emit(make_scored())
        assert copy.flush(PATIENCE)
        assert phoenix.rows[0]["identifier"] == "mine:record-1"
        assert phoenix.headers[0]["authorization"] == "Bearer secret-key"
        assert (copy.delivery, copy._content, copy.client.endpoint) == (
            delivery,
            emitter._content,
            emitter.client.endpoint,
        )
    finally:
        copy.shutdown(PATIENCE)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("documents", "false"),
        ("identifier", ""),
        ("timeout", 0),
        ("timeout", float("inf")),
        ("base_url", "localhost:6006"),
        ("base_url", "http://"),
    ],
)
def test_an_option_that_cannot_be_is_named(option, value):
    with pytest.raises(ConfigurationError, match=f"^{option} "):
        PhoenixAnnotations(**{option: value})


def test_importing_it_loads_no_http_client():
    program = "import sys, ragspan_phoenix; ragspan_phoenix.PhoenixAnnotations(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not {"httpx", "requests", "openai", "langchain_core"} & set(done.stdout.split())
