"""Datadog's own library beside the writer, where it is installed; `conftest` has the same shapes written down."""

from __future__ import annotations

import json

import pytest
from writer_law import PATIENCE, run_with

from ragspan.outcomes import Score

pytest.importorskip("ddtrace", reason="runs in `make test-clients`")
pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from ddtrace.llmobs import LLMObs

given = json.loads(sys.argv[1])
LLMObs.enable(agentless_enabled=True)
tags = dict(tag.split(":", 1) for tag in given["tags"])
LLMObs.submit_evaluation(
    span=given["join_on"]["span"], label=given["label"], metric_type=given["metric_type"], value=given["score_value"],
    tags=tags, ml_app=given["ml_app"], timestamp_ms=given["timestamp_ms"], assessment=given["assessment"],
    reasoning=given["reasoning"], metadata=given["metadata"],
)
LLMObs.flush()
LLMObs.disable()
"""


def test_the_librarys_evaluation_is_ours_but_for_two_tags(server, make_writer, make_scored, backend):
    writer = make_writer(explanations=True)
    writer.emit(
        make_scored({"faithfulness": Score(value=0.25, threshold=0.5, explanation="made up", judge="openai:x")})
    )
    assert writer.flush(PATIENCE)
    (ours,) = server.evaluations
    server.evaluations.clear()

    variables = {
        **backend.variables(server.url),
        "DD_TRACE_ENABLED": "false",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    }
    done = run_with(variables, server, "-c", PROGRAM, json.dumps(ours))

    assert done.returncode == 0, done.stderr
    (theirs,) = server.evaluations
    own_tags = [tag for tag in theirs["tags"] if not tag.startswith(("ddtrace.version:", "ml_app:"))]
    assert {**theirs, "tags": sorted(own_tags)} == {**ours, "tags": sorted(ours["tags"])}
