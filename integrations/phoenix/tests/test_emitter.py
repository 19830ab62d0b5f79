"""Scores on their way to a Phoenix that is there, not there, slow, or of another mind."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading

import pytest
import requests
from opentelemetry.metrics import NoOpMeterProvider

from ragspan import ConfigurationError, RagRecord, ScoringEngine
from ragspan.judges.base import ClaimVerdict, ContextVerdict
from ragspan.metrics import Faithfulness
from ragspan.outcomes import MetricFailure, Score
from ragspan.records import SpanAnchor
from ragspan.telemetry import is_suppressed
from ragspan.telemetry.base import EmitHandle
from ragspan.testing import FakeJudge, RecordingEmitter
from ragspan_phoenix import PhoenixAnnotations

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)
OTHER = SpanAnchor(trace_id=0xA1, span_id=0xB3)
PATIENCE = 20.0
GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def names(phoenix):
    return sorted(row["name"] for row in phoenix.rows)


def test_scores_arrive_with_their_verdicts_on_documents(phoenix, make_emitter, make_scored, utilization):
    emitter = make_emitter()
    emitter.emit(make_scored({"faithfulness": Score(value=0.5), "context_utilization": utilization}))

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["context_utilization"] * 3 + ["faithfulness"]
    assert [path for path, _ in phoenix.requests] == ["/v1/span_annotations", "/v1/document_annotations"]
    assert emitter.stats().delivered == 4


class AnswerSpan(RecordingEmitter):
    def start(self, record):
        return EmitHandle(self.emit, ANSWER)


def test_what_an_engine_redacts_is_in_no_annotation(phoenix, make_emitter):
    judge = FakeJudge(supported=[False], claims=["Anna lives in Rome."])
    engine = ScoringEngine(
        metrics=[Faithfulness(judge=judge)],
        emitters=[AnswerSpan(), make_emitter(explanations=True)],
        redact=lambda text: text.replace("Anna", "[name]"),
    )
    with engine:
        engine.submit(RagRecord(question="Who is Anna?", contexts=["Anna."], response="Anna lives in Rome."))
        assert engine.flush(PATIENCE)

    assert "[name] lives in Rome." in repr(phoenix.requests)
    assert "Anna" not in repr(phoenix.requests)


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
    assert emitter.stats().refused == {"no_such_document": 1}


def test_a_row_for_whose_sake_a_batch_is_refused_costs_the_others_nothing(phoenix, make_emitter, make_scored):
    def is_reserved(rows):
        return (400, "The name 'note' is reserved") if any(row["name"] == "note" for row in rows) else None

    phoenix.script.extend([is_reserved] * 20)
    emitter = make_emitter()
    emitter.emit(make_scored({name: Score(value=0.5) for name in ("a", "b", "note", "c", "d")}))

    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["a", "b", "c", "d"]
    assert emitter.stats().refused == {"http_400": 1}


QUOTING = Score(
    value=0.5,
    explanation="Zanzifer said so.",
    judge="overlap",
    evidence=(ClaimVerdict(index=0, supported=False, claim="Zanzifer said so."),),
)
ON_PASSAGES = Score(value=1.0, judge="m", evidence=(ContextVerdict(index=0, useful=True, explanation="Zanzifer"),))


@pytest.mark.parametrize(
    ("variables", "quotes", "explanation"),
    [
        ({}, False, "1 of 1 claims unsupported: sentence 1"),
        ({"RAGSPAN_EXPLANATIONS": "false", "RAGSPAN_CAPTURE_CONTENT": "true"}, False, None),
        ({"RAGSPAN_EXPLANATIONS": "true"}, True, "Zanzifer said so."),
        ({"RAGSPAN_CAPTURE_CONTENT": "true"}, True, "Zanzifer said so."),
        ({GENAI: "SPAN_ONLY"}, True, "Zanzifer said so."),
        ({GENAI: "EVENT_ONLY"}, False, "1 of 1 claims unsupported: sentence 1"),
    ],
)
def test_requests_quote_a_user_only_where_that_is_allowed(
    phoenix, make_emitter, make_scored, monkeypatch, variables, quotes, explanation
):
    for name in ("RAGSPAN_EXPLANATIONS", "RAGSPAN_CAPTURE_CONTENT", GENAI):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    emitter = make_emitter(failures=True)
    failure = MetricFailure(error_type="ValueError", message="Zanzifer")
    emitter.emit(make_scored({"faithfulness": QUOTING, "context_utilization": ON_PASSAGES, "own": failure}))

    assert emitter.flush(PATIENCE)
    assert ("Zanzifer" in str(phoenix.requests)) is quotes
    (row,) = [row for row in phoenix.rows if row["name"] == "faithfulness"]
    assert row["result"].get("explanation") == explanation


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


def test_a_phoenix_that_is_restarted_in_between_gets_everything(phoenix, make_emitter, make_scored):
    emitter = make_emitter()
    emitter.emit(make_scored({"before": Score(value=0.5)}))
    assert emitter.flush(PATIENCE)
    phoenix.stop()
    emitter.emit(make_scored({"meanwhile": Score(value=0.5)}))
    assert emitter.flush(0.3) is False

    phoenix.start()
    assert emitter.flush(PATIENCE)
    assert names(phoenix) == ["before", "meanwhile"]


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
    assert "secret" not in caplog.text + repr(emitter) + repr(vars(emitter)) + repr(emitter._location)


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
    emitter = make_emitter(api_key="secret-key", identifier="mine", documents=False, retry_window=60.0, timeout=3.0)

    copy = pickle.loads(pickle.dumps(emitter))
    try:
        copy.emit(make_scored())
        assert copy.flush(PATIENCE)
        assert phoenix.rows[0]["identifier"] == "mine:record-1"
        assert phoenix.headers[0]["authorization"] == "Bearer secret-key"
        assert (copy._delivery, copy._contents, copy._timeout) == (emitter._delivery, emitter._contents, 3.0)
    finally:
        copy.shutdown(PATIENCE)


def test_a_netrc_file_does_not_replace_the_key(phoenix, make_emitter, make_scored, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    emitter = make_emitter(api_key="secret-key\n")
    emitter.emit(make_scored())

    assert emitter.flush(PATIENCE)
    assert phoenix.headers[0]["authorization"] == "Bearer secret-key"


def test_a_meter_provider_does_not_travel():
    with pytest.raises(TypeError, match="belongs to this process"):
        pickle.dumps(PhoenixAnnotations(meter_provider=NoOpMeterProvider()))


def test_explanations_are_switched_off_by_the_environment(phoenix, make_emitter, make_scored, monkeypatch):
    monkeypatch.setenv("RAGSPAN_EXPLANATIONS", "false")
    emitter = make_emitter()
    emitter.emit(make_scored({"faithfulness": Score(value=0.5, explanation="quotes a passage")}))

    assert emitter.flush(PATIENCE)
    assert phoenix.rows[0]["result"] == {"score": 0.5}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("documents", "false"),
        ("explanations", 1),
        ("failures", None),
        ("identifier", ""),
        ("max_explanation_chars", 0),
        ("max_explanation_chars", 9000),
        ("timeout", 0),
        ("timeout", float("inf")),
        ("retry_window", -1),
        ("queue_size", 0),
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
