"""Traces that are stored in the tools: scored afterwards, and labelled by people there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from application import Application
from backends.server import eventually
from ragspan.tools.mlflow import MLflowSpanExporter

PROJECT = "stored"
SECONDS = 60.0
RAGSPAN = Path(sys.executable).with_name("ragspan")


def ragspan(*arguments, **environment):
    """What the command says; it has to end well."""
    command = [str(one) for one in (RAGSPAN, *arguments)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, check=False, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def evaluated(path):
    """The faithfulness of each row of a file that `ragspan evaluate` wrote; its first line says how."""
    return {row["record_id"]: row["outcomes"]["faithfulness"]["value"] for row in lines_of(path)[1:]}


def faithfulness_of(scored):
    return {one.record.record_id: one.outcomes["faithfulness"].value for one in scored}


def traced(exporter, **options):
    """Answers whose spans are in a tool, without scores of its own."""
    application = Application(exporter, **options)
    application.ask_everything()
    answers = application.scored()
    application.close()
    return answers


def agreement(tool, folder, **environment):
    """How `ragspan evaluate` finds a metric to agree with the labels that people gave in a tool."""
    table = folder / "labels.jsonl"
    ragspan("labels", "pull", tool, "--project", PROJECT, "--name", "correct", "-o", table, **environment)
    figures = folder / "agreement.json"
    ragspan("evaluate", table, "--label-column", "label", "--metrics", "faithfulness", "--json", figures)
    return lines_of(table), json.loads(figures.read_text())["agreement"]["metrics"]


pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def in_phoenix(phoenix):
    answers = traced(OTLPSpanExporter(f"{phoenix.url}/v1/traces"), resource={"openinference.project.name": PROJECT})
    eventually(lambda: len(phoenix.spans(PROJECT)), until=(4 * len(answers)).__eq__, seconds=SECONDS, what="all spans")
    return answers


@pytest.fixture(scope="module")
def in_mlflow(mlflow):
    answers = traced(MLflowSpanExporter(tracking_uri=mlflow.url, experiment=PROJECT))
    eventually(lambda: len(mlflow.traces(PROJECT)), until=len(answers).__eq__, seconds=SECONDS, what="all traces")
    return answers


def test_what_phoenix_has_is_scored_as_it_was_live_and_shows_there(phoenix, in_phoenix, tmp_path):
    scores = tmp_path / "scores.jsonl"
    ragspan(
        "evaluate", "--from", "phoenix", "--project", PROJECT, "--metrics", "faithfulness", "--to-trace", "-o", scores,
        PHOENIX_BASE_URL=phoenix.url,
    )  # fmt: skip

    live = faithfulness_of(in_phoenix)
    assert evaluated(scores) == live
    spans = {f"{one.span.span_id:016x}": live[one.record.record_id] for one in in_phoenix}
    found = [one for one in phoenix.annotations(PROJECT, spans) if one["annotator_kind"] == "CODE"]
    assert {(one["name"], one["span_id"], one["result"]["score"]) for one in found} == {
        ("faithfulness", *item) for item in spans.items()
    }
    assert len(found) == len(spans)


def test_what_people_say_in_phoenix_is_compared_with_the_judge(phoenix, in_phoenix, tmp_path):
    is_good = {one.record.record_id: one.outcomes["faithfulness"].value >= 0.5 for one in in_phoenix}
    rows = [
        {
            "span_id": f"{one.span.span_id:016x}",
            "name": "correct",
            "annotator_kind": "HUMAN",
            "result": {"label": "correct" if is_good[one.record.record_id] else "incorrect"},
        }
        for one in in_phoenix
    ]
    reply = httpx.post(f"{phoenix.url}/v1/span_annotations?sync=true", json={"data": rows}, trust_env=False)
    reply.raise_for_status()

    table, (figures,) = agreement("phoenix", tmp_path, PHOENIX_BASE_URL=phoenix.url)

    assert {row["record_id"]: row["label"] == "pass" for row in table} == is_good
    assert figures["auroc"]["value"] == 1.0


def test_what_mlflow_has_is_scored_as_it_was_live_and_shows_there(mlflow, in_mlflow, tmp_path):
    scores = tmp_path / "scores.jsonl"
    ragspan(
        "evaluate", "--from", "mlflow", "--project", PROJECT, "--metrics", "faithfulness", "--to-trace", "-o", scores,
        MLFLOW_TRACKING_URI=mlflow.url,
    )  # fmt: skip

    live = faithfulness_of(in_mlflow)
    assert evaluated(scores) == live
    for one in in_mlflow:
        found = mlflow.assessments(f"tr-{one.span.trace_id:032x}")
        (written,) = (item for item in found if item["source"]["source_type"] == "CODE")
        assert written["span_id"] == f"{one.span.span_id:016x}"
        score = one.outcomes["faithfulness"]
        assert written["feedback"]["value"] == (score.label or score.value)


def test_what_people_say_in_mlflow_is_compared_with_the_judge(mlflow, in_mlflow, tmp_path):
    is_good = {one.record.record_id: one.outcomes["faithfulness"].value >= 0.5 for one in in_mlflow}
    for one in in_mlflow:
        trace_id = f"tr-{one.span.trace_id:032x}"
        assessment = {
            "assessment_name": "correct",
            "trace_id": trace_id,
            "source": {"source_type": "HUMAN", "source_id": "a librarian"},
            "feedback": {"value": is_good[one.record.record_id]},
        }
        path = f"{mlflow.url}/api/3.0/mlflow/traces/{trace_id}/assessments"
        httpx.post(path, json={"assessment": assessment}, trust_env=False).raise_for_status()

    table, (figures,) = agreement("mlflow", tmp_path, MLFLOW_TRACKING_URI=mlflow.url)

    assert {row["record_id"]: row["label"] == "pass" for row in table} == is_good
    assert figures["auroc"]["value"] == 1.0
