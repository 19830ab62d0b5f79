"""The worst answers: which are shown, how much of their texts, and what is said of their claims and contexts."""

from __future__ import annotations

from dataclasses import replace

from ragspan import Score
from ragspan.evaluate.report.answer_cards import (
    show_answers,
)
from ragspan.judges.judge_protocols import ClaimVerdict

CLAIMS = (
    ClaimVerdict(index=0, verdict="supported", claim="The tower is 300 m tall."),
    ClaimVerdict(index=1, verdict="unsupported", claim="It is green.", explanation="no word of it", probability=0.1),
)


def only(row):
    (answer,) = show_answers([row])
    return answer


def test_answers_that_fail_most_come_first_and_of_equals_the_lowest(answered):
    values = [(0.9, 0.1), (0.4, 0.4), (0.1, 0.2), (0.9, 0.9)]
    rows = [answered(row, {"a": a, "b": b}, response=f"{row} m.") for row, (a, b) in enumerate(values, start=1)]

    assert [answer.row for answer in show_answers(rows)] == [3, 2, 1, 4]


def test_a_response_is_shown_once_with_the_rows_that_have_it_too(answered):
    responses = ["It is closed.", "300 m.", "It  is closed. ", "", ""]
    rows = [answered(row, {"a": 0.1 * row}, response=text) for row, text in enumerate(responses, start=1)]
    shown = show_answers(rows)

    assert [(answer.row, list(answer.same)) for answer in shown] == [(1, [3]), (2, []), (4, []), (5, [])]
    assert (shown[0].gist, shown[0].reason) == ("It is closed.", "")


def test_the_reason_of_an_answer_is_that_of_the_lowest_score_that_fails(answered):
    scores = {
        "a": Score(value=0.4, threshold=0.5, explanation="partly"),
        "b": Score(value=0.1, threshold=0.5, explanation="not at all"),
        "c": Score(value=0.0, explanation="no threshold"),
    }

    assert only(answered(1, scores)).reason == "not at all"


def test_unsupported_claims_are_marked_with_their_numbers_which_go_on_over_all_metrics(answered):
    outcomes = {name: Score(value=0.5, evidence=CLAIMS) for name in ("faithfulness", "faithfulness_hhem")}

    answer = only(answered(1, outcomes, response="The tower is 300 m tall. It is green."))

    (piece,) = (piece for piece in answer.response if piece.is_supported is False)
    assert (piece.text, piece.numbers, piece.link) == ("It is green.", (2, 4), "claim-2")
    assert answer.claims == list(enumerate([*CLAIMS, *CLAIMS], start=1))


# Texts ----------------------------------------------------------------------------------------------------------------


# Claims ---------------------------------------------------------------------------------------------------------------


def test_a_supported_sentence_leads_to_the_sentence_of_a_context_that_says_it(answered):
    context = "It opened in 1889. The tower is 300 m tall, without its antenna. " + "People like it. " * 100
    row = answered(1, {"faithfulness": Score(value=1.0, evidence=CLAIMS[:1])}, contexts=["Elsewhere.", context])

    answer = only(replace(row, record=replace(row.record, response="The tower is 300 m tall.")))

    (piece,) = answer.response
    start = context.index("The tower")
    assert (piece.is_supported, piece.link) == (True, f"2-{start}")
    (support,) = (piece for piece in answer.contexts[1].pieces if piece.numbers)
    assert (support.text, support.start) == ("The tower is 300 m tall, without its antenna.", start)
    assert "".join(piece.text for piece in answer.contexts[1].pieces) == context.strip()


# Contexts -------------------------------------------------------------------------------------------------------------
