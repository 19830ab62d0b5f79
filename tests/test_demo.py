"""`ragspan demo` as a user runs it: in a process of its own."""

import html
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragspan.demo import SCRIPT

pytestmark = pytest.mark.slow

README_PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")


def demo(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "ragspan.cli", "demo", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
        timeout=120,
    )


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return tmp_path_factory.mktemp("drawn") / "demo.svg"


@pytest.fixture(scope="module")
def shown(drawn):
    done = demo("--picture", str(drawn))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def part(shown, title):
    """The lines about one answer."""
    return next(piece for piece in shown.split("\n\n") if title in piece)


def labels(piece):
    return dict(re.findall(r"^  (\w+) +[\d.]+ (pass|fail)", piece, re.MULTILINE))


def test_it_fits_on_a_page_of_80_columns(shown):
    lines = shown.splitlines()

    assert len(SCRIPT) <= 8
    assert len(lines) < 80
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("asked", SCRIPT, ids=lambda asked: asked.title)
def test_every_answer_is_shown_with_its_question_and_its_steps(shown, asked):
    piece = part(shown, asked.title)

    assert asked.question in piece
    assert "> retrieval Handbook > chat " in piece


@pytest.mark.parametrize("title", [asked.title for asked in SCRIPT if asked.title.endswith("a good answer")])
def test_good_answers_pass_everything(shown, title):
    assert labels(part(shown, title)) == dict.fromkeys(METRICS, "pass")


def test_an_incomplete_answer_fails_completeness_only(shown):
    assert labels(part(shown, "an incomplete answer")) == dict.fromkeys(METRICS, "pass") | {"completeness": "fail"}


def test_an_invention_fails_everything(shown):
    assert labels(part(shown, "an invention")) == dict.fromkeys(METRICS, "fail")


def test_a_refusal_that_is_right_passes_where_grounding_is_asked_and_is_marked(shown):
    found = labels(part(shown, "a refusal"))

    assert (found["context_adherence"], found["faithfulness"]) == ("pass", "pass")
    assert "marked as one" in part(shown, "a refusal")


def test_a_stream_that_is_closed_early_is_not_scored(shown):
    assert "no metric applies: answer_aborted" in part(shown, "closed by its reader")


def test_an_answer_that_the_judge_gets_wrong_is_said_so(shown):
    """One that is wrong fails, or the page says that the judge did not see it."""
    for asked in SCRIPT:
        piece = part(shown, asked.title)
        misjudged = asked.is_wrong and labels(piece)["faithfulness"] == "pass"
        assert ("does not see it" in piece) == misjudged

    assert shown.count("does not see it") <= 1


def test_a_legend_says_what_the_metrics_and_the_judge_are(shown):
    legend = shown.rpartition("\n\n")[2]

    assert "Scores by the overlap judge" in legend
    assert all(metric in legend for metric in METRICS)
    assert "ragspan demo --otlp http://localhost:4318" in legend


def test_one_framework_can_be_asked_alone():
    done = demo("--framework", "llama-index")

    assert done.returncode == 0, done.stderr
    assert "LangChain" not in done.stdout
    assert labels(done.stdout) == dict.fromkeys(METRICS, "pass")


def test_scores_that_come_late_are_shown_too(fake_openai):
    def slowly(request):
        threading.Event().wait(0.3)  # a provider's latency
        vote = json.dumps({"answer": {"grounding": {"reasoning": "It is all there.", "verdict": "grounded"}}})
        return fake_openai.says(*[vote] * request.get("n", 1))

    fake_openai.answer = slowly
    done = demo(
        RAGSPAN_SCORE_WAIT="0.05",
        RAGSPAN_METRICS="context_adherence",
        RAGSPAN_JUDGE="openai:slow",
        RAGSPAN_JUDGE_BASE_URL=fake_openai.base_url,
    )

    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"context_adherence +1\.00 pass", done.stdout)) == 7
    assert "Scores by the openai:slow judge" in done.stdout


def test_it_sends_the_spans_to_an_otlp_endpoint(otlp_listener):
    done = demo("--otlp", otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert f"Sent {len(otlp_listener.spans)} spans to {otlp_listener.url}" in done.stdout
    scored = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    assert len(scored) == 7


def test_an_endpoint_where_nobody_listens_is_told_and_fails():
    done = demo("--otlp", "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT="1")

    assert done.returncode == 1
    assert "could not be sent to http://127.0.0.1:9" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        (["--framework", "haystack"], {}, "--framework is 'haystack', but should be one of langchain, llama-index"),
        ([], {"RAGSPAN_SAMPLE_RATE": "2"}, "RAGSPAN_SAMPLE_RATE is '2', but should be a number from 0 to 1"),
    ],
)
def test_wrong_usage_is_refused_in_one_line(arguments, environment, complaint):
    done = demo(*arguments, **environment)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def words(picture):
    """The lines of a picture, without the times, which differ from run to run."""
    rows = re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', picture.read_text(encoding="utf-8"))
    lines = {}
    for height, text in rows:
        lines.setdefault(height, []).append(html.unescape(text).replace("\N{NO-BREAK SPACE}", " "))
    return [without_times("".join(line)) for line in lines.values()]


def without_times(line):
    return re.sub(r"\d+ (ms|…)", "", line).strip()


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("which", ["drawn", "README"])
def test_the_pictures_say_what_the_demo_prints_and_load_nothing_from_anywhere(shown, drawn, which):
    picture = drawn if which == "drawn" else README_PICTURE
    printed = {without_times(line) for line in shown.splitlines()}

    found = [line for line in words(picture) if line not in {"", "ragspan demo"}]
    assert len(found) > 30
    assert [line for line in found if line not in printed] == []
    assert re.findall(r"https?://(?!www\.w3\.org)", picture.read_text(encoding="utf-8")) == []
