from __future__ import annotations

import pytest

from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.judges import LLMJudge, Price
from ragspan.metrics import ContextAdherence, Faithfulness

NAME = "lower case letters, digits and underscores"


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("queue_size", 0, "a whole number, at least 1"),
        ("sample_rate", 1.01, "a number from 0 to 1"),
        ("queue_bytes", 0, "a whole number, at least 1"),
        ("concurrency", 0, "a whole number, at least 1"),
        ("exit_timeout", -1, "a number of seconds, 0 or more"),
        ("name", 7, "a text that is not empty"),
        ("metric_timeout", 0, "a number of seconds, more than 0"),
        ("judging", "x", "one of helper, thread"),
        *(("judge_share", share, "a share above 0, up to 1, such as 0.2") for share in (0, 1.1, "a fifth")),
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
WAIT = "emitters[0].score_wait is -1, but should be a number of seconds, 0 or more"
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
            {"judge_when": "costant: 0.5"},
            "a metric in judge_when is 'costant', but should be one of constant, other; did you mean 'constant'?",
        ),
        ({"emitters": EMITTER}, "emitters is a dict, but should be a list"),
        ({"emitters": [Part(**EMITTER | {"score_wait": -1})]}, WAIT),
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
    with pytest.raises(ConfigurationError) as refused:
        ScoringEngine(metrics=metrics, budget=Budget(usd_per_day=5))
    assert str(refused.value) == (
        "budget limits usd_per_day, but what the judge 'unknown' costs is not known: give it price=Price(input, output) in "
        'dollars for a million tokens, or set RAGSPAN_JUDGE_OPTIONS to {"price": [input, output]}'
    )
