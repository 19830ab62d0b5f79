import pytest

import ragspan
from ragspan import ConfigurationError, RagRecord, Settings
from ragspan.defaults import judge_from, metrics_from, set_default_engine
from ragspan.judges import OpenAIJudge, OverlapJudge


@pytest.fixture(autouse=True)
def no_engine_yet():
    """Every test starts as a process does; engines that it makes are shut down."""
    before = set_default_engine(None)
    yield
    made = set_default_engine(before)
    if made is not None:
        made.shutdown(timeout=5)


def test_the_default_engine_is_made_once_and_scores_with_the_embedded_judge():
    engine = ragspan.default_engine()
    engine.submit(RagRecord(question="q", contexts=["Beta settles at night."], response="Beta settles at night."))

    assert engine.flush(timeout=10)
    assert ragspan.default_engine() is engine
    assert engine.stats().scored == 1


def test_a_wrong_variable_is_an_error_when_the_engine_is_made(monkeypatch):
    monkeypatch.setenv("RAGSPAN_QUEUE_SIZE", "0")

    with pytest.raises(ConfigurationError, match="RAGSPAN_QUEUE_SIZE is '0', but should be a whole number, at least 1"):
        ragspan.default_engine()


def test_turned_off_it_takes_nothing_and_needs_no_judge(monkeypatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:gpt-4o-mini")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    engine = ragspan.default_engine()
    engine.submit(RagRecord(question="q", contexts=["c"], response="r"))

    assert engine.flush(timeout=1)
    assert dict(engine.stats().dropped) == {"not_running": 1}


def test_the_metrics_and_the_judge_are_those_of_the_settings():
    metrics = metrics_from(Settings(metrics=("faithfulness", "completeness")))

    assert [metric.name for metric in metrics] == ["faithfulness", "completeness"]
    assert isinstance(judge_from(Settings()), OverlapJudge)


def test_the_llm_judge_is_made_for_the_model_and_endpoint_that_are_named():
    judge = judge_from(Settings(judge="openai:local", judge_base_url="http://127.0.0.1:1/v1"))

    assert isinstance(judge, OpenAIJudge)
    assert judge.name == "openai:local"


def test_a_paid_judge_without_a_key_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:gpt-4o-mini")

    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        ragspan.default_engine()
