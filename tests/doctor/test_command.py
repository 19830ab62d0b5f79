"""`ragspan doctor`: what it prints, and its exit code."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from ragspan.cli import app


def doctor(*arguments, **variables):
    return CliRunner().invoke(
        app, ["doctor", *arguments], env={"COLUMNS": "300", "RAGSPAN_JUDGING": "thread", **variables}
    )


SHOWN = """
Settings
  ok       RAGSPAN_JUDGING=thread
  ok       python, ragspan and more

Judge: what it said about one record
  ok       overlap answered in 0 s
           → it compares words; `ragspan judges` lists language models

Endpoint: what it said about the record's spans
  ok       http://127.0.0.1:PORT/v1/traces accepts them: HTTP 200

One record through all of it
  ok       scored: context_adherence 0.94, faithfulness 1.00
  ok       the span 'invoke_workflow ragspan doctor' arrived: trace_id ID, span_id ID, record_id ID
           → look for the attribute ragspan.record_id in your tool; Phoenix: attributes['ragspan']['record_id'] == 'ID'; \
MLflow: the trace tr-ID; other tools: https://github.com/ragspan/ragspan/blob/main/docs/tracing-tools.md

All is well: scores go where they should.
"""


def test_all_is_well_where_an_endpoint_takes_the_scores(sent_to):
    done = doctor()

    shown = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    for pattern, words in (
        (r"python 3.*", "python, ragspan and more"),
        (r"[\d.]+ s\b", "0 s"),
        (f":{sent_to.port}", ":PORT"),
        (r"\b[0-9a-f]{16,}", "ID"),
    ):
        shown = re.sub(pattern, words, shown)
    assert (done.exit_code, done.stderr, shown) == (0, "", SHOWN)
    assert any("ragspan.score.faithfulness" in span.attributes for span in sent_to.spans)


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        ([], {"RAGSPAN_JUDGE": "gpt-4o"}, "there is no judge 'gpt-4o' here"),
        (["--timeout", "0"], {}, "greater than or equal to 0.1"),
    ],
)
def test_a_wrong_setting_or_argument_is_told_without_a_traceback(arguments, variables, complaint):
    done = doctor(*arguments, **variables)

    assert (done.exit_code, "Traceback" in done.output) == (2, False)
    assert complaint in done.output
