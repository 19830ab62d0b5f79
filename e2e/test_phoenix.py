"""Scores in Phoenix: as annotations by its API, and as people find them in its web page."""

from __future__ import annotations

from collections import Counter

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from application import DOCUMENTATION, METRICS, Application, KnownSpans, engine_for
from backends.server import eventually
from phoenix_screen import PhoenixScreen
from ragspan.tools.phoenix import PhoenixEmitter
from traffic import SCRIPT

PROJECT = "library"
SECONDS = 60.0
BAD_QUESTIONS = [asked.question for asked in SCRIPT if not asked.is_good] * 2  # one for each framework


@pytest.fixture(scope="module")
def scored(phoenix):
    """What was scored, once Phoenix has it all."""
    application = Application(
        OTLPSpanExporter(f"{phoenix.url}/v1/traces"),
        writer=PhoenixEmitter(base_url=phoenix.url, capture_content=True),
        resource={"openinference.project.name": PROJECT},
    )
    application.ask_everything()
    answers = application.scored()
    application.close()
    assert application.writer.stats().delivered > 0
    eventually(
        lambda: len(phoenix.spans(PROJECT)),
        until=(4 * len(answers)).__eq__,
        seconds=SECONDS,
        what="the request, the answer, the search and the call of each",
    )
    return answers


@pytest.fixture
def shown(screen, phoenix, scored):
    return PhoenixScreen(screen, phoenix)


def span_id(one):
    return f"{one.span.span_id:016x}"


def annotations_of(phoenix, scored):
    """By span and name: each annotation that ragspan wrote."""
    found = phoenix.annotations(PROJECT, map(span_id, scored))
    assert {annotation["annotator_kind"] for annotation in found} == {"CODE"}  # the embedded judge is no model
    return Counter((one["span_id"], one["name"], one["result"]["score"], one["result"]["label"]) for one in found)


def test_the_script_has_answers_of_both_kinds_and_the_judge_tells_them_apart(scored):
    assert len(scored) == 2 * len(SCRIPT)
    assert {
        (one.record.question, one.outcomes["faithfulness"].value >= 0.5) for one in scored
    } == {(asked.question, asked.is_good) for asked in SCRIPT}  # fmt: skip


def test_every_score_is_one_annotation_of_the_answers_span(phoenix, scored):
    assert annotations_of(phoenix, scored) == Counter(
        (span_id(one), metric, outcome.value, outcome.label)
        for one in scored
        for metric, outcome in one.outcomes.items()
    )


def test_the_explanation_is_with_the_score(phoenix, scored):
    explanations = {
        (one["span_id"], one["name"]): one["result"]["explanation"]
        for one in phoenix.annotations(PROJECT, map(span_id, scored))
    }

    assert explanations == {
        (span_id(one), metric): outcome.explanation for one in scored for metric, outcome in one.outcomes.items()
    }


def test_a_second_run_of_the_same_records_leaves_no_duplicate(phoenix, scored):
    before = annotations_of(phoenix, scored)
    again = PhoenixEmitter(base_url=phoenix.url, capture_content=True)
    engine = engine_for(KnownSpans({one.record.record_id: one.span for one in scored}), again)

    for one in scored:
        engine.submit(one.record)
    assert engine.flush(SECONDS)
    engine.shutdown(SECONDS)

    assert again.stats().delivered >= sum(before.values())
    assert annotations_of(phoenix, scored) == before


def test_the_trace_tree_shows_the_scores(screen, shown, scored):
    bad = next(one for one in scored if one.record.question == BAD_QUESTIONS[0])

    screen.resize(width=2000, height=900)
    shown.open_trace(span_id(bad))

    eventually(
        shown.details,
        until=lambda text: all(metric in text for metric in METRICS),
        seconds=SECONDS,
        what="the scores of the answer",
    )
    assert "completeness" in shown.tree()


def test_the_annotation_column_shows_the_scores(shown, scored):
    shown.open_spans(PROJECT)
    shown.filter("span_kind == 'CHAIN'")
    shown.add_column("faithfulness")

    shown.wait_for_column("faithfulness", [f"μ {one.outcomes['faithfulness'].value:.2f}" for one in scored])


@pytest.mark.parametrize(
    "condition",
    [
        "annotations['faithfulness'].score < 0.5",
        "annotations['faithfulness'].label == 'fail'",
        "attributes['ragspan']['score']['faithfulness'] < 0.5",
    ],
)
def test_the_filter_leaves_exactly_the_bad_answers(shown, condition):
    shown.open_spans(PROJECT)

    shown.filter(condition)

    shown.wait_for_column("input", BAD_QUESTIONS)
    assert condition in DOCUMENTATION


def test_the_picture_of_the_bad_answers(shown):
    shown.open_spans(PROJECT)
    shown.filter("annotations['faithfulness'].label == 'fail'")
    shown.wait_for_column("input", BAD_QUESTIONS)

    shown.widen("annotations", by=600)
    eventually(
        lambda: shown.column("annotations"),
        until=lambda column: all("faithfulness" in text for text in column),
        seconds=SECONDS,
        what="the scores beside each answer",
    )
    shown.picture_of_table("phoenix-bad-answers", until_column="annotations")
