"""`ragspan demo` as a user runs it: in a process of its own."""

import os
import re
from pathlib import Path

import pytest
from programs import run_python
from whole_records import WholeRecords, steady

from ragspan.demo import SCRIPT

pytestmark = pytest.mark.slow

WHOLE = WholeRecords(Path(__file__).with_name("whole_demo.json"))
METRICS = ("context_adherence", "faithfulness")


def demo(*arguments, **environment):
    command = ("-W", "ignore", "-m", "ragspan.cli", "demo")
    return run_python(*command, *arguments, environment={**os.environ, **environment})


@pytest.fixture(scope="module")
def shown():
    done = demo()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def part(shown, title):
    """The lines about one answer."""
    return next(piece for piece in shown.split("\n\n") if title in piece)


def labels(piece):
    return dict(re.findall(r"^  (\w+) +[\d.]+ (pass|fail)", piece, re.MULTILINE))


@pytest.mark.parametrize("asked", SCRIPT, ids=lambda asked: asked.title)
def test_every_answer_is_shown_with_its_question_its_response_and_its_scores(shown, asked):
    piece = part(shown, asked.title)
    is_wrong = asked.title.endswith(("a wrong number", "an invention"))

    assert f"question             {asked.question}" in piece
    if "closed by its reader" in asked.title:
        assert "not scored           -    answer_aborted" in piece
    else:
        assert f"response             {asked.response}" in piece
        told = {} if asked.title.endswith("a refusal") else dict.fromkeys(METRICS, "fail" if is_wrong else "pass")
        assert labels(piece) == told  # words do not show whether a refusal is right


def test_the_whole_page_is_as_it_was_read(shown):
    """After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/test_demo.py`, and read the difference."""
    known, found = WHOLE.told("demo", [steady(line.rstrip()) for line in shown.splitlines()])

    assert found == known


def test_one_framework_can_be_asked_alone_and_its_spans_are_sent(otlp_listener):
    done = demo("--framework", "llama-index", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert "LangChain" not in done.stdout
    assert labels(done.stdout) == dict.fromkeys(METRICS, "pass")
    [scored] = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    [request] = [span for span in otlp_listener.spans if not span.parent_id]
    assert scored.parent_id == request.span_id
