"""One line brings answers and their scores to Phoenix."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

APPLICATION = Path(__file__).parents[3] / "tests" / "applications" / "configured.py"


@pytest.mark.slow
def test_its_address_alone_brings_spans_and_annotations_there(phoenix):
    done = subprocess.run(
        [sys.executable, APPLICATION, json.dumps([{"phoenix": phoenix.url, "capture_content": True}])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"NO_PROXY": "*"},
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "invoke_workflow payments" in phoenix.span_names
    assert {row["name"] for row in phoenix.rows} >= {"faithfulness", "completeness", "context_adherence"}
    assert any("words" in (row["result"]["explanation"] or "") for row in phoenix.rows), "quotes, as content is on"


@pytest.mark.slow
@pytest.mark.parametrize("has_the_span", [True, False], ids=["taken", "not taken"])
def test_the_doctor_says_whether_phoenix_takes_the_scores(phoenix, has_the_span):
    if not has_the_span:
        phoenix.take_spans = lambda _body: None  # another project, or another server, has them
    done = subprocess.run(
        [sys.executable, "-m", "ragspan.cli", "doctor", "--timeout", "20" if has_the_span else "5"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ
        | {
            "NO_PROXY": "*",
            "RAGSPAN_EMITTERS": "otel,phoenix",
            "OTEL_EXPORTER_OTLP_ENDPOINT": phoenix.url,
            "COLUMNS": "200",
        },
    )

    assert done.returncode == (0 if has_the_span else 1), done.stdout
    assert (f"ok       phoenix at {phoenix.url} has taken 4 scores" in done.stdout) == has_the_span
    assert (f"failed   phoenix at {phoenix.url} has not taken" in done.stdout) != has_the_span
