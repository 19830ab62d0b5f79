"""Scores on their way to a Phoenix that is there, not there, slow, or that refuses some of them."""

from __future__ import annotations

import json

import pytest
from waiting import until
from writer_law import APPLICATION, PATIENCE, WriterLaw, run_with

from ragspan.outcomes import Score
from ragspan.records import SpanAnchor

OTHER = SpanAnchor(trace_id=0xA1, span_id=0xB3)


class TestTrouble(WriterLaw):
    pass


def test_what_phoenix_does_not_have_yet_waits_and_delays_no_other(phoenix, make_writer, make_scored, caplog):
    writer = make_writer()
    writer.emit(make_scored({"early": Score(value=0.5)}, span=OTHER))
    writer.emit(make_scored({"here": Score(value=0.5)}))

    until(lambda: set(phoenix.scores) == {"here"})
    assert writer.flush(0) is False
    phoenix.add_span(OTHER)
    assert writer.flush(PATIENCE)
    assert (set(phoenix.scores), caplog.messages) == ({"early", "here"}, [])


def test_what_is_left_at_the_end_is_left_with_phoenix_until_its_span_comes(phoenix, make_writer, make_scored):
    writer = make_writer()
    writer.emit(make_scored({"early": Score(value=0.5)}, span=OTHER))

    writer.shutdown(0.1)

    assert [row["name"] for row in phoenix.kept] == ["early"]
    assert writer.stats().delivered == 1


@pytest.mark.slow
def test_its_address_alone_brings_spans_and_annotations_there(phoenix):
    configured = json.dumps({"phoenix": phoenix.url, "capture_content": True})

    done = run_with({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, phoenix, APPLICATION, configured)

    assert (done.returncode, done.stderr) == (0, "")
    assert "invoke_workflow payments" in phoenix.span_names
    assert set(phoenix.scores) >= {"faithfulness", "context_adherence"}
    assert any("words" in (row["result"]["explanation"] or "") for row in phoenix.rows), "quotes, as content is on"
