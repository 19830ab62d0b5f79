"""A jury: several judges vote, the first answers the rest."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from fakes import FakeJudge

from ragspan import ConfigurationError, MetricFailure, RagRecord
from ragspan.config import Settings
from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges import Jury, OpenAIJudge, OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence
from ragspan.metrics.metric_catalogue import metrics_from

RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="It settles at night.")


class CountingJudge(FakeJudge):
    """Notes how many votes and ratings it is asked for, and fails if it is told to."""

    def __init__(self, name, *, error=None, **verdicts):
        super().__init__(name=name, **verdicts)
        object.__setattr__(self, "counts", [])
        object.__setattr__(self, "error", error)

    async def vote_adherence(self, record, votes):
        self.counts.append(votes)
        if self.error is not None:
            raise self.error
        return await super().vote_adherence(record, votes)

    async def rate_completeness(self, record, ratings):
        self.counts.append(ratings)
        return await super().rate_completeness(record, ratings)


def outcome_of(metric):
    return asyncio.run(metric.score(RECORD))


@pytest.mark.parametrize(
    ("count", "polls", "shares"),
    [(2, 3, [[2], [1]]), (3, 3, [[1], [1], [1]]), (3, 2, [[1], [1], []])],
)
@pytest.mark.parametrize("kind", [ContextAdherence, Completeness])
def test_votes_and_ratings_are_spread_in_turn(kind, count, polls, shares):
    judges = [CountingJudge(name) for name in "abc"[:count]]

    score = outcome_of(kind(Jury(judges), polls=polls))

    assert [judge.counts for judge in judges] == shares
    assert score.judge == ",".join("abc"[:count])
    assert score.details[f"valid_{kind.answers}"] == polls


LOST = JudgeError("APITimeoutError", "no answer", outage=True, status=408)
SPENT, UNREADABLE = BudgetExhausted("usd_per_day", outage=False), JudgeError("InvalidVerdict", "prose")


@pytest.mark.parametrize(
    ("errors", "polls", "failed"),
    [
        ((None, LOST), 3, None),
        ((None, LookupError("a defect")), 3, None),
        ((LOST, None), 3, LOST),
        ((None, LOST), 2, LOST),
        ((None, UNREADABLE), 3, UNREADABLE),
        ((SPENT, None), 3, SPENT),
    ],
)
def test_a_judge_that_fails_costs_no_score_while_more_than_half_of_the_votes_are_there(caplog, errors, polls, failed):
    kind = getattr(errors[1], "error_type", "LookupError")
    names = "a", f"b of {polls} {kind}"  # one line a minute is of one judge, whichever test it is in
    judges = [CountingJudge(name, error=error) for name, error in zip(names, errors, strict=True)]
    outcome = outcome_of(ContextAdherence(Jury(judges), polls=polls))

    if failed is None:
        assert caplog.messages == [f"the jury votes without {names[1]}, which failed with {kind}"]
        assert outcome.details["valid_votes"] == 2
    else:
        words = str(failed) if failed is SPENT else f"{names[0] if errors[0] else names[1]}: {failed}"
        told = {name: getattr(failed, name) for name in ("error_type", "outage", "status")}
        assert outcome == MetricFailure(message=words, **told)


async def test_what_is_not_voted_on_the_first_answers():
    jury = Jury([FakeJudge(name="a", claims=["One."], useful=[True]), FakeJudge(name="b", supported=[False])])

    assert await jury.extract_claims(RECORD) == ["One."]
    assert [one.supported for one in await jury.verify_claims(RECORD, ["One."])] == [True]
    assert [one.value for one in await jury.judge_usefulness(RECORD)] == [1.0]


@pytest.mark.parametrize(
    ("judges", "message"),
    [
        ([], "the number of judges is 0, but should be two or more, in a list"),
        ([FakeJudge()], "the number of judges is 1, but should be two or more, in a list"),
        ([FakeJudge(), 7], "judges[1] is 7, but should be a judge, with methods vote_adherence and rate_completeness"),
        (
            [FakeJudge, FakeJudge()],
            "judges[0] is the class FakeJudge, but should be a judge, with methods vote_adherence and rate_completeness",
        ),
    ],
)
def test_a_jury_of_fewer_than_two_or_of_others_than_judges_is_refused(judges, message):
    with pytest.raises(ConfigurationError) as refused:
        Jury(judges)

    assert str(refused.value) == message


async def test_a_jury_says_what_its_judges_read():
    jury = Jury([OverlapJudge(), OpenAIJudge("m", api_key="k", max_context_chars=1000)])
    record = replace(RECORD, contexts=("word " * 1000,))

    assert jury.name == "overlap,openai:m"
    assert jury.prompt_version == "8"
    assert 0 < jury.share_read(record) < 1


def test_settings_name_a_jury_and_metrics_take_what_they_can_of_it(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    settings = Settings.from_environment({"RAGSPAN_JUDGE": "openai:gpt-4o-mini, anthropic:claude-haiku-4-5"})

    names = {metric.name: metric.judge.name for metric in metrics_from(settings)}

    both = "openai:gpt-4o-mini,anthropic:claude-haiku-4-5"
    assert names == {
        "context_adherence": both,
        "faithfulness": "openai:gpt-4o-mini",
    }
    given = metrics_from(Settings(), ["completeness"], judge=["openai:a", FakeJudge(name="mine")])
    assert given[0].judge.name == "openai:a,mine"


@pytest.mark.parametrize(
    ("judge", "settings", "message"),
    [("openai:a,anthropic:b", {"judge_base_url": "http://h/v1"}, "RAGSPAN_JUDGE_BASE_URL would count for all")],
)
def test_what_is_one_judges_is_not_taken_for_all(judge, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        metrics_from(Settings(judge=judge, **settings))
