"""`ragspan demo` as a user runs it: in a process of its own."""

import html
import os
import re
from pathlib import Path

import pytest
from programs import run_python

from ragspan.demo import SCRIPT

pytestmark = pytest.mark.slow

README_PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")


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
    failing = {
        "an incomplete answer": {"completeness"},
        "a wrong number": {"context_adherence", "completeness", "faithfulness"},
        "an invention": set(METRICS),
    }.get(asked.title.rpartition(": ")[2], set())

    assert f"question             {asked.question}" in piece
    if "closed by its reader" in asked.title:
        assert "not scored           -    answer_aborted" in piece
    else:
        assert f"response             {asked.response}" in piece
        told = {metric: "fail" if metric in failing else "pass" for metric in METRICS}
        if asked.title.endswith("a refusal"):  # words do not show whether the contexts hold nothing of it
            assert "faithfulness         -    cannot_tell" in piece
            del told["faithfulness"]
        assert labels(piece) == told


def test_a_legend_says_what_the_metrics_and_the_judge_are(shown):
    legend = shown[shown.index("Scores by the embedded judge") :]

    assert all(metric in legend for metric in METRICS)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ragspan demo" in legend


def test_one_framework_can_be_asked_alone_and_its_spans_are_sent(otlp_listener):
    done = demo("--framework", "llama-index", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert "LangChain" not in done.stdout
    assert labels(done.stdout) == dict.fromkeys(METRICS, "pass")
    [scored] = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    [request] = [span for span in otlp_listener.spans if not span.parent_id]
    assert scored.parent_id == request.span_id


def test_the_picture_shows_what_the_demo_prints_and_loads_nothing_from_anywhere(shown):
    picture = README_PICTURE.read_text(encoding="utf-8")
    lines = {}
    for height, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', picture):
        lines[height] = lines.get(height, "") + html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    printed = without_times(shown)

    drawn = [without_times(line.strip()) for line in lines.values()]
    assert [line for line in drawn if line != "ragspan demo" and line not in printed] == []
    assert any("wrong number" in line for line in drawn)
    assert without_times(part(shown, "a wrong number")).split() == [
        word for line in drawn if line != "ragspan demo" for word in line.split()
    ], "the whole of one answer, and nothing else"
    assert re.findall(r"https?://(?!www\.w3\.org|www\.textualize\.io|localhost)", picture) == []


def without_times(text):
    return re.sub(r"\d+ ms", "", text)
