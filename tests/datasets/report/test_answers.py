from __future__ import annotations

import math

from ragspan import MetricFailure, NotApplicable, Score
from ragspan.datasets.report.answers import show_answers
from ragspan.judges.base import ClaimVerdict, Rating, Vote

CLAIMS = (
    ClaimVerdict(index=0, supported=True, claim="The tower is 300 m tall."),
    ClaimVerdict(index=1, supported=False, claim="It is green.", explanation="no word of it", probability=0.1),
)


def only(rows):
    (answer,) = show_answers(rows)
    return answer


def test_answers_that_fail_most_come_first_and_of_equals_the_lowest(answered):
    rows = [
        answered(1, {"a": 0.9, "b": 0.1}),
        answered(2, {"a": 0.4, "b": 0.4}),
        answered(3, {"a": 0.1, "b": 0.2}),
        answered(4, {"a": 0.9, "b": 0.9}),
    ]

    assert [answer.row for answer in show_answers(rows)] == [3, 2, 1, 4]


def test_an_unsupported_claim_is_marked_with_its_number_and_listed_with_its_reasons(answered):
    row = answered(
        1, {"faithfulness": Score(value=0.5, evidence=CLAIMS)}, response="The tower is 300 m tall. It is green."
    )

    answer = only([row])

    assert [(piece.text, piece.claims) for piece in answer.response if piece.claims] == [("It is green.", (2,))]
    assert [(claim.number, claim.is_supported) for claim in answer.claims] == [(1, True), (2, False)]
    assert (answer.claims[1].explanation, answer.claims[1].probability) == ("no word of it", 0.1)


def test_claims_of_two_metrics_have_numbers_of_their_own(answered):
    outcomes = {name: Score(value=0.5, evidence=CLAIMS) for name in ("faithfulness", "faithfulness_hhem")}

    answer = only([answered(1, outcomes, response="It is green.")])

    assert [(claim.number, claim.metric) for claim in answer.claims][2:] == [
        (3, "faithfulness_hhem"),
        (4, "faithfulness_hhem"),
    ]
    assert answer.response[0].claims == (2, 4)


def test_of_many_claims_the_unsupported_ones_are_kept(answered):
    claims = tuple(ClaimVerdict(index=place, supported=place != 99, claim=f"Claim {place}.") for place in range(100))

    answer = only([answered(1, {"faithfulness": Score(value=0.99, evidence=claims)})])

    assert answer.claim_count == 100
    assert len(answer.claims) < 100
    assert answer.claims[-1].number == 100


def test_a_metric_that_does_not_apply_says_what_its_reason_means(answered):
    score = only([answered(1, {"m": NotApplicable(reason="no_claims", detail="a greeting")})]).scores[0]

    assert (score.state, score.reason) == ("not scored", "no_claims")
    assert score.explanation.shown == "the response makes no claims; a greeting"


def test_a_failure_is_told_with_its_message(answered):
    score = only([answered(1, {"m": MetricFailure(error_type="timeout", message="after 60 s")})]).scores[0]

    assert (score.state, score.reason, score.explanation.shown) == ("not scored", "timeout", "after 60 s")


def test_votes_that_differ_are_listed_and_those_of_a_deterministic_judge_are_not(answered):
    divided = (Vote(grounded=True), Vote(grounded=False, explanation="no"), Vote(grounded=True))
    same = (Rating(value=0.5),) * 3

    scores = only([answered(1, {"a": Score(value=0.6, evidence=divided), "b": Score(value=0.5, evidence=same)})]).scores

    assert scores[0].verdicts == ("grounded (2 times)", "not grounded: no")
    assert scores[1].verdicts == ()


def test_figures_that_are_no_numbers_are_left_out(answered):
    details = {"spread": 0.25, "broken": math.nan, "odd": "text", "endless": math.inf}

    assert only([answered(1, {"m": Score(value=0.5, details=details)})]).scores[0].figures == (("spread", 0.25),)


def test_unknown_contexts_are_not_the_same_as_none(answered):
    assert only([answered(1, {"m": 0.1}, contexts=None)]).passages is None
    assert only([answered(1, {"m": 0.1}, contexts=())]).passages == ()


def test_texts_of_a_megabyte_are_cut_and_what_is_missing_is_counted(answered):
    huge = "word " * 200_000

    answer = only([answered(1, {"m": 0.1}, question=huge, contexts=[huge, huge], response=huge)])

    shown = sum(len(piece.text) for piece in answer.response)
    assert shown + answer.omitted == len(huge.strip())
    assert shown < 10_000
    assert answer.question.omitted > 900_000
    assert all(passage.text.omitted > 900_000 for passage in answer.passages)


def test_more_answers_have_less_room_each(answered):
    rows = [answered(row, {"m": 0.1}, response="word " * 20_000) for row in range(1, 201)]

    assert sum(len(piece.text) for answer in show_answers(rows) for piece in answer.response) < 1_000_000
