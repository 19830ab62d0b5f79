"""Failing answers on the page: what is marked, what they share, and what they are chosen by."""

from __future__ import annotations

from ragspan import NotApplicable, RetrievedContext, Score
from ragspan.evaluate.report import show_failing
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import JudgedContext

RESPONSE = "The tower is 330 metres high. It is painted green. It may be old."
CONTEXTS = [
    RetrievedContext(text="The tower is 330 metres high.", source="tower.md"),
    RetrievedContext(text="Trams run all night.", id="7"),
]
CLAIMS = tuple(
    ClaimVerdict(index=place, verdict=verdict, claim=claim)
    for place, (verdict, claim) in enumerate(
        [
            ("supported", "The tower is 330 metres high."),
            ("unsupported", "It is painted green."),
            ("unsure", "It may be old."),
        ]
    )
)


def test_claims_are_marked_in_the_response_and_their_support_in_the_contexts(answered, evaluation_of):
    verdicts = tuple(JudgedContext(index=index, id=None, rank=None, value=value) for index, value in enumerate((1, 0)))
    outcomes = {
        "faithfulness": Score(value=0.3, threshold=0.5, evidence=CLAIMS, explanation="green"),
        "context_utilization": Score(value=0.9, threshold=0.5, evidence=verdicts),
        "completeness": NotApplicable(reason="no_question"),
    }
    evaluation = evaluation_of([answered(1, outcomes, contexts=CONTEXTS, response=RESPONSE)])
    (answer,) = show_failing(evaluation)["answers"]

    marks = [(RESPONSE[mark["start"] : mark["end"]], mark["verdict"]) for mark in answer["response"]["marks"]]
    assert marks == [
        ("The tower is 330 metres high.", "supported"),
        ("It is painted green.", "unsupported"),
        ("It may be old.", "unsure"),
    ]
    assert evaluation.not_scored == {"completeness": {"no_question": [1]}}
    assert "completeness: not scored: no_question 1 (row 1)" in str(evaluation)


def test_documents_and_words_that_failing_answers_share_are_counted_and_chosen_by(answered, evaluation_of):
    def row(number, value, topic, source):
        contexts = [RetrievedContext(text="c", metadata={"source": source})]
        found = answered(
            number, {"a": value}, question=f"What does {topic} cost?", contexts=contexts, response=f"{number}."
        )
        found.record.metadata["model"] = "m1" if number % 2 else "m2"
        return found

    rows = [
        row(number, 0.1 if number < 7 else 0.9, topic, f"{number % 2}.md")
        for number, topic in enumerate(["parking"] * 5 + ["storage"] * 4 + ["luggage"] * 11)
    ]
    found = show_failing(evaluation_of(rows, by=("model",)))

    assert found["topics"] == [{"name": "parking", "failing": 5, "answers": 5}]
    assert [one["name"] for one in found["documents"]] == ["0.md", "1.md"]
    assert [answer["row"] for answer in found["answers"]] == list(range(7))


def test_a_column_of_the_table_is_chosen_by_whatever_its_name_is(answered, evaluation_of):
    row = answered(1, {"a": 0.1})
    row.record.metadata["document"] = "account.md"
    (answer,) = show_failing(evaluation_of([row, answered(2, {"a": 0.2})], by=("document",)))["answers"][:1]

    assert answer["groups"]["document"] == ["account.md"]


def test_answers_with_a_score_and_no_verdict_come_after_the_failing_ones(answered, evaluation_of):
    values = [0.9, Score(value=0.45), 0.1, NotApplicable(reason="contexts_unknown")]
    found = show_failing(evaluation_of(answered(row, {"a": value}) for row, value in enumerate(values, 1)))
    rank = show_failing(
        evaluation_of(answered(row, {"a": Score(value=0.5)}, response=f"{row}.") for row in range(1, 50))
    )

    states = [(answer["row"], answer["scores"][0]["state"]) for answer in found["answers"]]
    assert states == [(3, "fail"), (2, "scored"), (4, "not scored")]
    assert len(rank["answers"]) == 20, "a metric without a threshold leaves nothing open"


def test_copies_of_a_row_are_one_answer_with_their_number(answered, evaluation_of):
    rows = [answered(row, {"a": 0.1}, response="No." if row < 5 else "Yes.") for row in range(1, 7)]
    rows[3].record.metadata["model"] = "m1"
    found = show_failing(evaluation_of(rows, by=("model",)))["answers"]

    assert [(answer["row"], answer["copies"]) for answer in found] == [(1, 3), (4, 1), (5, 2)]


def test_a_word_of_few_answers_is_left_out_and_a_long_document_shows_that_it_was_cut(answered, evaluation_of):
    rows = [answered(row, {"a": 0.1}, question="Parking?", contexts=["word " * 30]) for row in range(1, 3)]
    rows += [answered(row, {"a": 0.9}, contexts=["other"]) for row in range(3, 20)]
    found = show_failing(evaluation_of(rows))

    assert found["topics"] == []
    (document,) = found["documents"]
    assert (len(document["name"]), document["name"][-1]) == (60, "…")
