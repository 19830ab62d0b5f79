"""Scores on the spans that answers had when they were given."""

from __future__ import annotations

import pytest

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ENDED = 1_577_880_000_000_000_000
ROW = {"question": "q", "contexts": ["a tower"], "answer": "a tower"}


@pytest.fixture
def back_fill(otlp_listener, monkeypatch, command, write_jsonl):
    """Evaluates rows with `--to-trace` against an endpoint on this machine."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp_listener.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    return lambda rows, *options: command(
        "evaluate", write_jsonl(rows), "--metrics", "faithfulness", "--to-trace", *options
    )


def test_scores_go_to_the_spans_that_the_rows_name(back_fill, otlp_listener):
    done = back_fill([{**ROW, "trace_id": TRACE, "span_id": SPAN, "ended": ENDED}, ROW])

    assert done.exit_code == 0, done.stderr
    (span,) = otlp_listener.spans
    assert (span.name, span.trace_id, span.parent_id) == ("evaluation faithfulness", TRACE, SPAN)
    assert span.attributes["ragspan.score.faithfulness"] == 1.0
    assert "the scores of 1 answer go to their spans" in done.stderr


def test_rows_whose_ids_name_no_span_are_told_and_send_nothing(back_fill, otlp_listener):
    done = back_fill([{**ROW, "trace_id": TRACE, "span_id": "zz"}])

    assert done.exit_code == 0
    assert "the first is row 1 (line 1): the span id is not 16 hexadecimal digits, or zero" in done.stderr
    assert otlp_listener.spans == []
    assert "1 row evaluated" in done.stdout


def test_scores_that_could_not_be_sent_are_exit_code_1(back_fill, otlp_listener):
    otlp_listener.answers(400, b"no")
    done = back_fill([{**ROW, "trace_id": TRACE, "span_id": SPAN}])

    assert done.exit_code == 1
    assert "not everything was sent (1 span not)" in done.stderr
