"""Which metrics an evaluation has."""

from __future__ import annotations

import json

import pytest

from ragspan.config import Settings, settings_with
from ragspan.datasets.evaluation import metrics_for
from ragspan.datasets.run import described
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OpenAIJudge
from ragspan.metrics import ContextAdherence, Faithfulness


def test_metrics_are_given_by_name_and_as_they_are(judge, length_metric):
    own = Faithfulness(judge, threshold=0.5)
    chosen = metrics_for(["completeness", own, length_metric, "completeness"], Settings(), judge)

    assert [metric.name for metric in chosen] == ["completeness", "faithfulness", "length"]
    assert (chosen[1], chosen[0].judge) == (own, judge)


def test_names_may_be_one_text_and_without_any_they_are_those_of_the_settings(judge):
    settings = Settings(metrics=("context_utilization",))

    assert [metric.name for metric in metrics_for("faithfulness, completeness", settings, judge)] == [
        "faithfulness",
        "completeness",
    ]
    assert [metric.name for metric in metrics_for(None, settings, judge)] == ["context_utilization"]


def test_a_judge_that_cannot_answer_is_an_error_that_names_it():
    with pytest.raises(ConfigurationError, match="answer_relevance needs an LLMJudge"):
        metrics_for("answer_relevance", Settings(), "overlap")


def test_a_judge_is_named_as_in_the_environment_and_comes_before_it(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGE", "overlap")

    assert settings_with("openai:gpt-4o-mini", concurrency=3).judge == "openai:gpt-4o-mini"
    assert settings_with(concurrency=3).concurrency == 3


def test_a_wrong_variable_is_told_by_its_own_name(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGE", "gpt")

    with pytest.raises(ConfigurationError, match="RAGSPAN_JUDGE is 'gpt'"):
        settings_with()


def test_a_description_tells_settings_and_judges_apart_and_holds_no_key():
    judge = OpenAIJudge("gpt-4o-mini", api_key="secret", base_url="http://localhost/secret")
    about = described(ContextAdherence(judge, polls=5))

    assert (about["name"], about["polls"]) == ("context_adherence", 5)
    assert about["judge"].startswith("openai:gpt-4o-mini, prompts ")
    assert "secret" not in json.dumps(about)
    assert about != described(ContextAdherence(judge, polls=3))
