"""Which answers are judged: conditions and rates, as the variable, the argument and `ragspan run` take them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import FakeJudge
from typer.testing import CliRunner

import ragspan
from ragspan import RagRecord, ScoringEngine
from ragspan.cli import app
from ragspan.exceptions import ConfigurationError
from ragspan.judges.judge_when import JudgeWhen, facts_of
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import Generation
from ragspan.testing import RecordingEmitter

SECOND = 1_000_000_000


def answer(**changes):
    values = {
        "question": "What does shipping cost?",
        "contexts": ["Shipping costs 4 euros."],
        "response": "Shipping costs 4 euros.",
        "tags": ("prod", "eu"),
        "session_id": "s-17",
        "user_id": "ada",
        "metadata": {"release": "2.1", "retries": 3, "beta": True, "environment": "production"},
        "generations": (Generation(model="gpt-4o-mini", provider="openai", started_ns=0, ended_ns=1),),
        "started_ns": 0,
        "ended_ns": 3 * SECOND,
    }
    return RagRecord(**(values | changes))


CONDITIONS = json.loads(Path(__file__).with_name("conditions.json").read_text("utf-8"))
"""Right ones with whether `answer()` meets them, wrong ones with what is said of them, and at which character."""


@pytest.mark.parametrize(("text", "expected"), CONDITIONS["right"])
def test_a_condition_chooses_answers(text, expected):
    assert JudgeWhen(text).chooses("faithfulness", facts_of(answer())) is expected


@pytest.mark.parametrize(("text", "words", "place"), CONDITIONS["wrong"])
def test_a_wrong_condition_is_an_error_at_start_that_shows_where(text, words, place, monkeypatch):
    if text:
        monkeypatch.setenv("RAGSPAN_JUDGE_WHEN", text)
        with pytest.raises(ConfigurationError) as raised:
            ragspan.configure()
        told = f"{words}; it should be like 'tag=prod and latency>2s', or 'tag=prod; faithfulness: 0.1'"
        shown = f"    {text}\n    {' ' * (place - 1)}^"
        assert str(raised.value) == f"RAGSPAN_JUDGE_WHEN is wrong at character {place}: {told}\n{shown}"
    with pytest.raises(ConfigurationError, match=f"judge_when is wrong at character {place}"):
        ragspan.configure(judge_when=text)


def test_ragspan_run_starts_no_program_with_a_wrong_condition(monkeypatch, tmp_path):
    monkeypatch.setenv("RAGSPAN_JUDGE_WHEN", "tag=prod and")
    program = tmp_path / "app.py"
    program.write_text("raise SystemExit('it ran')")

    refused = CliRunner().invoke(app, ["run", str(program)])

    assert refused.exit_code == 2
    assert "RAGSPAN_JUDGE_WHEN is wrong at character" in refused.output


def test_what_an_answer_lacks_equals_nothing():
    facts = facts_of(RagRecord(question="q", contexts=None, response="r", started_ns=5))

    for text in ("tag=*", "user=*", "model=*", "latency>0s", "latency<9s", "environment=*"):
        assert JudgeWhen(text).chooses("m", facts) is False
    assert JudgeWhen("user!=ada").chooses("m", facts) is True


@pytest.mark.parametrize(
    ("text", "rates", "metrics"),
    [
        ("a: 50%; b: 0.25 of tag=prod; tag=eu", {"a": 0.5, "b": 0.25}, {"a", "b"}),
        ("a: 100%; b: 1; c: tag=prod", {"a": 1.0, "b": 1.0}, {"a", "b", "c"}),
        ("a: .5; tag=eu", {"a": 0.5}, {"a"}),
        ("tag=eu", {}, set()),
    ],
)
def test_statements_have_rates_of_their_metrics(text, rates, metrics):
    assert (JudgeWhen(text).rates, JudgeWhen(text).metrics) == (rates, metrics)


async def scored(when, judge=None, **changes):
    judge = judge or FakeJudge()
    emitter = RecordingEmitter()
    metrics = [ContextAdherence(judge), Faithfulness(judge)]
    with ScoringEngine(metrics=metrics, emitters=[emitter], judging="thread", judge_when=when) as engine:
        engine.submit(answer(**changes))
        engine.flush(30)
    return emitter.scored[0].outcomes


async def test_what_is_not_judged_says_why():
    outcomes = await scored("tag=staging")

    assert list(outcomes.values()) == [NotApplicable(reason="judge_when")] * 2


async def test_the_environment_is_that_of_opentelemetrys_variable(monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop, deployment.environment.name=staging")
    outcomes = await scored("environment=staging; faithfulness: environment=prod", metadata={})

    assert isinstance(outcomes["context_adherence"], Score)
    assert outcomes["faithfulness"] == NotApplicable(reason="judge_when")


async def test_each_metric_may_have_a_condition_and_a_rate_of_its_own():
    outcomes = await scored("latency>2s; faithfulness: tag=staging; context_adherence: 100% of user=ada")
    assert isinstance(outcomes["context_adherence"], Score)
    assert outcomes["faithfulness"] == NotApplicable(reason="judge_when")

    outcomes = await scored("faithfulness: 0")
    assert isinstance(outcomes["context_adherence"], Score)
    assert outcomes["faithfulness"] == NotApplicable(reason="not_sampled")
