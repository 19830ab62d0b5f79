"""Every way to switch Phoenix on does the same: spans go there, and scores to them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from programs import run_python

pytestmark = pytest.mark.slow
APPLICATIONS = Path(__file__).parents[3] / "tests" / "applications"
RUN = ("-m", "ragspan.cli", "run", APPLICATIONS / "plain.py", "[]")
URL = "the server's address"


def configured(**arguments):
    return (APPLICATIONS / "configured.py", json.dumps([arguments]), "flush")


def run(program, **variables):
    others = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAGSPAN_", "OTEL_", "PHOENIX_"))
    }
    return run_python(*program, environment=others | {"NO_PROXY": "*", "RAGSPAN_EXIT_TIMEOUT": "60"} | variables)


@pytest.mark.parametrize(
    ("program", "emitters"),
    [(configured(phoenix=URL), None), (configured(emitters=["phoenix"]), None), (RUN, "phoenix")],
    ids=str,
)
def test_spans_and_scores_arrive(phoenix, program, emitters):
    program = [str(one).replace(URL, phoenix.url) for one in program]
    variables = {"PHOENIX_COLLECTOR_ENDPOINT": phoenix.url} | ({"RAGSPAN_EMITTERS": emitters} if emitters else {})

    done = run(program, **variables)

    assert done.returncode == 0, done.stderr
    assert "invoke_workflow payments" in phoenix.span_names, done.stderr
    assert phoenix.scores["faithfulness"] == 1.0


def test_a_server_that_is_away_is_said_and_counted(phoenix):
    phoenix.stop()

    done = run(RUN, RAGSPAN_EMITTERS="phoenix", PHOENIX_COLLECTOR_ENDPOINT=phoenix.url)

    phoenix.start()
    assert done.returncode == 0, done.stderr
    assert "phoenix took no score: no server listens there: connection refused; " in done.stderr
    assert "scores dropped: shutdown" in done.stderr
