"""Scores in MLflow: as assessments by its API, and as people find them in its web page and with its client."""

from __future__ import annotations

from collections import Counter

import pytest

from application import DOCUMENTATION, METRICS, Application, KnownSpans, engine_for
from backends.server import eventually
from mlflow_screen import MLflowScreen
from ragspan.tools.mlflow import MLflowEmitter
from traffic import SCRIPT

EXPERIMENT = "library"
SECONDS = 60.0
BAD_QUESTIONS = [asked.question for asked in SCRIPT if not asked.is_good] * 2  # one for each framework
CONDITION = "feedback.faithfulness = 'fail'"


@pytest.fixture(scope="module")
def scored(mlflow):
    """What was scored, once MLflow has it all. The answers are roots: MLflow's table shows the texts of roots only."""
    writer = MLflowEmitter(tracking_uri=mlflow.url, experiment=EXPERIMENT, capture_content=True)
    application = Application(writer.span_exporter(), writer=writer)
    application.ask_everything(in_requests=False)
    answers = application.scored()
    application.close()
    assert writer.stats().delivered == len(METRICS) * len(answers)
    eventually(
        lambda: len(mlflow.traces(EXPERIMENT)), until=len(answers).__eq__, seconds=SECONDS, what="all traces"
    )  # fmt: skip
    return answers


@pytest.fixture
def shown(screen, mlflow, scored):
    screen.resize(width=2000, height=800)
    return MLflowScreen(screen, mlflow)


def trace_id(one):
    return f"tr-{one.span.trace_id:032x}"


def bad_traces(scored):
    return {trace_id(one) for one in scored if one.record.question in BAD_QUESTIONS}


def assessments_of(mlflow, scored):
    """By trace and span: each assessment, with its score."""
    return Counter(
        (
            trace_id(one),
            found["span_id"],
            found["assessment_name"],
            found["feedback"]["value"],
            float(found["metadata"]["ragspan.score"]),
        )
        for one in scored
        for found in mlflow.assessments(trace_id(one))
    )


def test_every_score_is_one_assessment_of_the_answers_span(mlflow, scored):
    assert assessments_of(mlflow, scored) == Counter(
        (trace_id(one), f"{one.span.span_id:016x}", metric, outcome.label or round(outcome.value, 4), outcome.value)
        for one in scored
        for metric, outcome in one.outcomes.items()
    )


def test_a_second_run_of_the_same_records_leaves_no_duplicate(mlflow, scored):
    before = assessments_of(mlflow, scored)
    again = MLflowEmitter(tracking_uri=mlflow.url, capture_content=True)
    engine = engine_for(KnownSpans({one.record.record_id: one.span for one in scored}), again)

    for one in scored:
        engine.submit(one.record)
    assert engine.flush(SECONDS)
    engine.shutdown(SECONDS)

    assert assessments_of(mlflow, scored) == before


def test_the_search_of_mlflows_client_finds_exactly_the_bad_answers(mlflow, scored):
    assert set(mlflow.found_by_its_client(EXPERIMENT, CONDITION)) == bad_traces(scored)
    assert f'filter_string="{CONDITION}"' in DOCUMENTATION


def test_what_is_low_looks_low_in_the_table(screen, shown, scored):
    """MLflow draws `fail` in red, and a number without a colour."""
    screen.resize(width=1600, height=800)
    shown.open_traces(EXPERIMENT)

    shown.wait_for_column("faithfulness", [one.outcomes["faithfulness"].label.capitalize() for one in scored])
    screen.resize(width=2460, height=800)  # columns of metrics stand to the right of all others
    shown.picture("mlflow-traces", height=580)


def test_the_trace_shows_the_scores(shown, scored):
    bad = next(one for one in scored if one.record.question == BAD_QUESTIONS[0])

    shown.open_trace(EXPERIMENT, trace_id(bad))

    eventually(
        shown.trace,
        until=lambda text: all(metric in text for metric in METRICS),
        seconds=SECONDS,
        what="the assessments of the answer",
    )
