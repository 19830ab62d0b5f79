"""`ragspan demo` as a user runs it: in a process of its own."""

import html
import json
import os
import re
import subprocess
import sys
import threading

import pytest

from ragspan.demo import SCRIPT
from ragspan.demo.corpus import Search, documentation

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
    return done.stdout


def part(shown, framework):
    """What the demo shows of one framework's answers."""
    return shown.split(f"Asking {framework} about")[1].split("Asking ")[0]


@pytest.mark.parametrize(
    ("framework", "kinds"),
    [("langchain", ("documentation", "agent")), ("llama-index", ("RetrieverQueryEngine", "FunctionAgent"))],
)
def test_each_framework_answers_a_dozen_questions_and_a_tree_shows_each_call(shown, framework, kinds):
    questions = [question for asked in SCRIPT for question in asked.questions]
    trees = part(shown, framework)

    assert len(questions) == 12
    assert all(
        f"{asked.questions[0]} ({framework}, {asked.way.value})" in trees
        for asked in SCRIPT
        if len(asked.questions) == 1
    )
    assert [trees.count(f"rag {kind} ") for kind in kinds] == [11, 1]


@pytest.mark.parametrize("framework", ["langchain", "llama-index"])
def test_answers_are_good_bad_refused_and_left_early(shown, framework):
    trees = part(shown, framework)

    assert re.search(r"faithfulness +1\.00 pass", trees)
    assert re.search(r"faithfulness +0\.00 fail", trees)
    assert "complete  refusal" in trees
    assert "answer_aborted" in trees


@pytest.mark.parametrize("metric", METRICS)
def test_the_summary_has_every_metric_of_each_framework_by_its_full_name_at_80_columns(shown, metric):
    assert len(re.findall(rf"│ {metric} +│ +11 │", shown)) == 2
    assert max(map(len, shown.splitlines())) <= 80


def test_one_framework_can_be_asked_alone():
    done = demo("--framework", "llama-index")

    assert done.returncode == 0, done.stderr
    assert "langchain" not in done.stdout
    assert len(re.findall(r"│ faithfulness +│ +11 │", done.stdout)) == 1


def test_a_real_model_can_answer(fake_openai):
    def answer(request):
        text = "The passages say so in so many words."
        return fake_openai.streams(text) if request.get("stream") else fake_openai.says(text)

    fake_openai.answer = answer
    done = demo(
        *("--framework", "langchain", "--model", "openai:big"),
        OPENAI_BASE_URL=fake_openai.base_url,
        OPENAI_API_KEY="sk-test-0123456789",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chat m ") == 12  # as the endpoint names it
    assert {request["model"] for request in fake_openai.requests} == {"big"}


def test_a_real_model_that_does_not_answer_is_told_in_one_line(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.fails(401, "no such customer")

    done = demo(
        *("--framework", "langchain", "--model", "openai:big"),
        OPENAI_BASE_URL=fake_openai.base_url,
        OPENAI_API_KEY="sk-test-0123456789",
    )

    assert done.returncode == 2
    assert "ragspan demo: langchain gets no answer from openai:big: " in done.stderr
    assert "no such customer" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_says_which_judge_scored_and_what_to_type_next(shown):
    assert "Scores by the overlap judge" in shown
    assert "ragspan demo --otlp http://localhost:4318" in shown


def test_scores_that_come_late_are_spans_of_the_same_trace(fake_openai):
    def slowly(request):
        threading.Event().wait(0.3)  # a provider's latency
        vote = json.dumps({"answer": {"grounding": {"reasoning": "It is all there.", "verdict": "grounded"}}})
        return fake_openai.says(*[vote] * request.get("n", 1))

    fake_openai.answer = slowly
    done = demo(
        *("--framework", "langchain"),
        RAGSPAN_SCORE_WAIT="0.05",
        RAGSPAN_METRICS="context_adherence",
        RAGSPAN_JUDGE="openai:slow",
        RAGSPAN_JUDGE_BASE_URL=fake_openai.base_url,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("evaluation context_adherence") == 11
    assert re.search(r"│ context_adherence +│ +11 │ +11 │", done.stdout)
    assert "Scores by the openai:slow judge" in done.stdout


def test_it_sends_the_spans_to_an_otlp_endpoint(otlp_listener):
    done = demo("--framework", "langchain", "--otlp", otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert f"Sent {len(otlp_listener.spans)} spans to {otlp_listener.url}" in done.stdout
    assert any("ragspan.score.faithfulness" in span.attributes for span in otlp_listener.spans)


def test_an_endpoint_where_nobody_listens_is_told_and_fails():
    done = demo("--framework", "langchain", "--otlp", "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT="1")

    assert done.returncode == 1
    assert "could not be sent to http://127.0.0.1:9" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        (["--framework", "haystack"], {}, "--framework is 'haystack', but should be one of: langchain, llama-index"),
        (["--framework", "langchain", "--model", "gpt-4o"], {}, "--model is 'gpt-4o', but should be 'openai:<name>'"),
        ([], {"RAGSPAN_SAMPLE_RATE": "2"}, "RAGSPAN_SAMPLE_RATE is '2', but should be a number from 0 to 1"),
    ],
)
def test_wrong_usage_is_refused_in_one_line(arguments, environment, complaint):
    done = demo(*arguments, **environment)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("shown")
def test_the_picture_shows_an_answer_of_each_framework_and_loads_nothing_from_anywhere(drawn):
    picture = html.unescape(drawn.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")

    assert re.findall(r"\((langchain|llama-index), invoke\)", picture) == ["langchain", "llama-index"]
    assert picture.count("faithfulness") == 4
    assert re.findall(r"https?://(?!www\.w3\.org)", picture) == []


def test_the_search_finds_the_passage_that_a_question_is_about():
    best, _ = Search(documentation()).find("What happens when the queue is full?")[0]

    assert best.source == "operations.md"
    assert "queue_size" in best.text
