"""`ragspan doctor` as a user runs it: in a process of its own."""

import os

import pytest
from programs import run_python

pytestmark = pytest.mark.slow


def doctor(*arguments, **variables):
    environment = {**os.environ, "COLUMNS": "80", **variables}
    return run_python("-W", "error", "-m", "ragspan.cli", "doctor", *arguments, environment=environment)


def test_all_is_well_where_an_endpoint_takes_the_scores(otlp_listener):
    done = doctor(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert (done.returncode, done.stderr) == (0, "")
    assert "All is well" in done.stdout
    assert any("ragspan.score.faithfulness" in span.attributes for span in otlp_listener.spans)
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        ([], {"RAGSPAN_JUDGE": "gpt-4o"}, "there is no judge 'gpt-4o' here"),
        (["--timeout", "0"], {}, "greater than or equal to 0.1"),
    ],
)
def test_a_wrong_setting_or_argument_is_told_without_a_traceback(arguments, variables, complaint):
    done = doctor(*arguments, **variables)

    assert done.returncode == 2
    assert complaint in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
