"""A judge that is asked about a share of the answers, through the real client; the embedded judge reads all."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from doubtful import an_answer, some_answers
from measured import points_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.engine import Budget
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import Score
from ragspan.records import SpanAnchor


def four_metrics(judge):
    return [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]


@pytest.fixture
def shared(fakes, make_engine):
    """Scores answers with an engine that has a share; gives what came of them, in order."""

    def run(answers, *metrics, judge_share=0.2, **options):
        engine = make_engine(*metrics, judging="thread", judge_share=judge_share, **options)

        async def score_all():
            return [await engine.score(answer) for answer in answers]

        return asyncio.run(score_all())

    return run


def scores_of(scored):
    return {name: outcome for name, outcome in scored.outcomes.items() if isinstance(outcome, Score)}


def test_the_judge_is_asked_about_its_share_and_the_embedded_judges_score_stands_beside_its_own(
    shared, asked_judge, endpoint
):
    found = shared(some_answers(80), *four_metrics(asked_judge))

    asked = [one for one in found if one.asked]
    assert len(asked) == pytest.approx(16, abs=5)
    assert len(endpoint.requests) == len(asked)
    for one in found:
        for name, score in scores_of(one).items():
            assert score.judge == ("openai:m" if one.asked else "overlap"), name
            assert (score.screen is not None) == bool(one.asked), name
    wrong = next(one for one in found if one.asked == "doubtful")
    adherence = wrong.outcomes["context_adherence"]
    assert (adherence.value, adherence.label, adherence.judge) == (0.0, "fail", "openai:m")
    assert (adherence.screen.label, adherence.screen.judge) == ("fail", "overlap")
    assert 0 < adherence.screen.value < 0.5


def test_the_random_part_is_drawn_by_trace_whatever_the_answers_are(shared, asked_judge):
    # Some of these traces are drawn: chance does not take all of their answers for doubtful.
    spans = [SpanAnchor(trace_id=number, span_id=1, trace_flags=1) for number in range(143, 193)]
    good = shared([an_answer(0, parent=span) for span in spans], ContextAdherence(asked_judge), judge_share=0.4)
    bad = shared([an_answer(5, parent=span) for span in spans], ContextAdherence(asked_judge), judge_share=0.4)

    drawn = [number for number, one in enumerate(good) if one.asked == "random"]
    assert drawn
    assert all(bad[number].asked for number in drawn)


# Where the judge fails, or is too dear


def test_where_the_judge_fails_the_embedded_judges_score_stays_and_says_why(shared, asked_judge, endpoint, caplog):
    endpoint.answer = lambda request: endpoint.fails(400, "no")
    found = shared(some_answers(40), *four_metrics(asked_judge))

    asked = [one for one in found if one.asked]
    assert asked
    for one in asked:
        assert {score.judge for score in scores_of(one).values()} == {"overlap"}
        assert all(score.fallback for score in scores_of(one).values())
        assert len(scores_of(one)) == 4
    assert "failed with" in caplog.text


def test_where_the_budget_has_no_room_the_embedded_judges_score_stays(shared, asked_judge, endpoint):
    budget = Budget(requests_per_minute=10)
    found = shared(some_answers(75), *four_metrics(asked_judge), judge_share=0.5, budget=budget)

    assert len(endpoint.requests) <= 20, "a minute's requests, and what the test's time adds"
    denied = [one for one in found if one.asked and all(score.fallback for score in scores_of(one).values())]
    assert len(denied) > 10
    for one in denied:
        assert {(score.judge, score.fallback) for score in scores_of(one).values()} == {("overlap", "budget_exhausted")}


# What is told


def labels_of(reader):
    return {
        (dict(point.attributes)["ragspan.part"], dict(point.attributes)["gen_ai.evaluation.score.label"]): point.value
        for point in points_of(reader, "ragspan.labels")
        if dict(point.attributes)["gen_ai.evaluation.name"] == "context_adherence"
    }


def test_answers_are_counted_by_part_and_by_the_judges_label(shared, asked_judge):
    reader = InMemoryMetricReader()
    found = shared(some_answers(50), *four_metrics(asked_judge), meter_provider=MeterProvider([reader]))

    told = labels_of(reader)
    asked = Counter(one.asked for one in found)
    assert sum(told.values()) == 50
    assert told["doubtful", "fail"] + told.get(("doubtful", "pass"), 0) == asked["doubtful"]
    assert told.get(("rest", "fail"), 0) + told.get(("rest", "pass"), 0) == asked["random"]
    assert told["rest", "unknown"] == asked[None]
    failing = sum(one.asked == "doubtful" and not one.record.record_id.endswith("-0") for one in found)
    assert told["doubtful", "fail"] == failing


# What is refused


def test_without_another_judge_there_is_no_share(make_engine):
    said = (
        "^judge_share goes by the doubts of context_adherence and faithfulness, but neither is among the metrics that ask "
        "another judge than the embedded one, which reads all: name a judge, such as RAGSPAN_JUDGE=openai:gpt-4o-mini$"
    )
    with pytest.raises(ConfigurationError, match=said):
        make_engine(ContextAdherence(OverlapJudge()), judge_share=0.2)
