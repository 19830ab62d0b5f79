from __future__ import annotations

import pytest

from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.judges import LLMJudge, OverlapJudge, Price
from ragspan.metrics import ContextAdherence, Faithfulness

NAME = "lower case letters, digits and underscores"


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("queue_size", 0, "a whole number, at least 1"),
        ("drop", "random", "'oldest' or 'newest'"),
        ("sample_rate", 1.01, "a number from 0 to 1"),
        ("metric_timeout", 0, "a number of seconds, more than 0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(fakes, argument: str, value: object, allowed: str):
    with pytest.raises(ConfigurationError) as refused:
        ScoringEngine(metrics=[fakes.ConstantMetric()], **{argument: value})

    assert str(refused.value) == f"{argument} is {value!r}, but should be {allowed}"


class Part:
    """A metric or an emitter that has what it is given."""

    def __init__(self, **has: object) -> None:
        vars(self).update(has)


METRICS = [Part(score=print, name=name) for name in ("constant", "other")]
EMITTER = {"start": print, "flush": print, "shutdown": print, "score_wait": 0.0}
LACKS = "emitters[0] is a Part, but should be an object with the methods start, flush, shutdown"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "faithfulness"}, "metrics is 'faithfulness', but should be a list"),
        ({"metrics": [Part(name="m")]}, "metrics[0] is a Part, but should be an object with a score method"),
        ({"metrics": [Part(score=print, name="My M")]}, f"metrics[0].name is 'My M', but should be {NAME}"),
        (
            {"metrics": METRICS[:1] * 2},
            "metrics[1].name is 'constant', but should be unlike the names of the other metrics",
        ),
        (
            {"metric_sample_rates": {"costant": 0.5}},
            "a name in metric_sample_rates is 'costant', but should be one of constant, other; did you mean 'constant'?",
        ),
        *(({"emitters": [Part(**EMITTER | {method: None})]}, LACKS) for method in ("start", "flush", "shutdown")),
    ],
)
def test_a_wrong_part_is_refused_by_its_place(options: dict[str, object], message: str):
    with pytest.raises(ConfigurationError) as refused:
        ScoringEngine(**{"metrics": METRICS, **options})  # type: ignore[arg-type]

    assert str(refused.value) == message


class SilentClient:
    """Is never asked."""

    async def complete(self, request):
        raise AssertionError


def test_a_budget_in_dollars_needs_the_price_of_every_judge():
    metrics = [
        ContextAdherence(LLMJudge(SilentClient(), name="known", price=Price(1, 2))),
        Faithfulness(LLMJudge(SilentClient(), name="unknown")),
    ]
    with pytest.raises(ConfigurationError, match=r"what the judge 'unknown' costs is not known: give it price=Price"):
        ScoringEngine(metrics=metrics, budget=Budget(usd_per_day=5))


@pytest.mark.parametrize(
    ("judge", "budget"),
    [
        (LLMJudge(SilentClient(), name="unknown"), Budget(tokens_per_minute=1000)),
        (OverlapJudge(), Budget(usd_per_day=5)),
    ],
)
def test_a_budget_in_other_terms_or_without_paid_judges_needs_no_price(judge, budget: Budget):
    engine = ScoringEngine(metrics=[Faithfulness(judge)], budget=budget)

    assert engine.shutdown().abandoned == 0


def test_the_environment_can_be_wrong_too(fakes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "maybe")

    with pytest.raises(ConfigurationError, match="RAGSPAN_ENABLED is 'maybe'"):
        ScoringEngine(metrics=[fakes.ConstantMetric()])
