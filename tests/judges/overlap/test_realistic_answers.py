"""Answers as assistants write them: words that changed places, and where the embedded judge is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable, Score

WRITTEN = Path(__file__).parents[3] / "benchmarks" / "realistic_written.jsonl"


async def adherence(context: str, response: str, question: str = "") -> Score | NotApplicable:
    outcome = await ContextAdherence(OverlapJudge(), polls=1, causes=False).score(
        RagRecord(question=question, contexts=[context], response=response)
    )
    assert isinstance(outcome, (Score, NotApplicable))
    return outcome


async def label(context: str, response: str, question: str = "") -> str | None:
    outcome = await adherence(context, response, question)
    return outcome.label if isinstance(outcome, Score) else outcome.reason


SWAPPED = [
    (
        "Nodes are upgraded one by one, beginning with the followers and ending with the leader.",
        "Nodes are upgraded one by one, beginning with the leader and ending with the followers.",
    ),
    (
        "Nodes are upgraded one by one, beginning with the followers and ending with the leader.",
        "Upgrade the nodes one after the other: begin with the leader and end with the followers.",
    ),
    (
        "We pay up to £900 for luggage that is lost, and up to £300 for cameras.",
        "We pay up to £300 for luggage that is lost, and up to £900 for cameras.",
    ),
    (
        "Der Mieter zahlt kleine Reparaturen, und der Vermieter zahlt die Heizung.",
        "Der Vermieter zahlt kleine Reparaturen, und der Mieter zahlt die Heizung.",
    ),
    (
        "L'accueil vérifie les dossiers, et la commission attribue les bourses.",
        "La commission vérifie les dossiers, et l'accueil attribue les bourses.",
    ),
    (
        "El ayuntamiento es propietario del edificio, y la fundación gestiona el museo.",
        "El edificio es propiedad de la fundación, y el ayuntamiento gestiona el museo.",
    ),
    (
        "O distribuidor repara os contadores, e a empresa envia as faturas.",
        "A empresa repara os contadores, e o distribuidor envia as faturas.",
    ),
]


@pytest.mark.parametrize(("context", "swapped"), SWAPPED)
async def test_two_parts_of_a_sentence_that_changed_words_contradict(context: str, swapped: str) -> None:
    assert await label(context, swapped) == "fail"


@pytest.mark.parametrize("context", [context for context, _ in SWAPPED])
async def test_the_same_two_parts_in_the_other_order_are_right(context: str) -> None:
    first, pause, second = context.rstrip(".").partition(", ")
    turned = f"{second}{pause}{first}." if pause and " and ending" not in context else context
    assert await label(context, turned) == "pass"


async def test_the_explanation_of_swapped_parts_quotes_both_sides() -> None:
    context, swapped = SWAPPED[0]
    outcome = await adherence(context, swapped)
    assert isinstance(outcome, Score)
    assert "beginning with the leader" in str(outcome.explanation)
    assert "beginning with the followers" in str(outcome.explanation)


async def test_active_for_passive_is_no_swap() -> None:
    context = "The bridge was designed by Anna Reyes and built by the company Holm."
    assert await label(context, "Anna Reyes designed the bridge, and the company Holm built it.") == "pass"


@pytest.mark.parametrize(
    ("context", "right", "wrong"),
    [
        (
            "La entrada general cuesta 9 euros y la reducida 5 euros.",
            "La entrada reducida cuesta 5 euros.",
            "La entrada reducida cuesta 9 euros.",
        ),
        (
            "Die Frist verlängert sich nach fünf Jahren auf sechs Monate und nach acht Jahren auf neun Monate.",
            "Nach acht Jahren beträgt die Frist neun Monate.",
            "Nach fünf Jahren beträgt die Frist neun Monate.",
        ),
    ],
)
async def test_the_number_of_the_part_beside_contradicts(context: str, right: str, wrong: str) -> None:
    assert await label(context, right) == "pass"
    assert await label(context, wrong) == "fail"


DELIVERY = (
    "The endpoint has to return a 2xx status within 10 seconds. Other responses are retried. Redirects are not followed. "
    "Events may arrive more than once. Changes of last year: the response timeout was reduced from 30 seconds."
)


async def test_a_number_that_stands_elsewhere_cannot_be_told_where_another_one_of_its_kind_stands_near() -> None:
    assert await label(DELIVERY, "The endpoint has to return a 2xx status within 30 seconds.") in {
        "fail",
        "cannot_tell",
    }
    assert await label(DELIVERY, "The endpoint has to return a 2xx status within 10 seconds.") == "pass"


LEAVE = "Permanent staff may work from home. Trainees and temporary staff are not entitled to it. Requests go to the manager."


async def test_a_yes_to_what_a_sentence_denies_cannot_be_told() -> None:
    question = "May trainees work from home?"
    assert await label(LEAVE, "Yes, trainees may work from home.", question) in {"fail", "cannot_tell"}


async def test_a_yes_to_what_another_sentence_says_is_decided() -> None:
    question = "May permanent staff work from home?"
    assert await label(LEAVE, "Yes, permanent staff may work from home.", question) == "pass"


async def test_a_claim_that_cannot_be_told_is_neither_supported_nor_unsupported() -> None:
    response = "The endpoint has to return a 2xx status within 30 seconds."
    assert await label(DELIVERY, response) == "cannot_tell"
    record = RagRecord(question=None, contexts=[DELIVERY], response=response)
    outcome = await Faithfulness(OverlapJudge()).score(record)
    assert isinstance(outcome, NotApplicable)
    assert outcome.reason == "cannot_tell"


@pytest.mark.parametrize(
    ("context", "response", "question"),
    [
        (
            "Das Grillen mit Holzkohle ist auf den Balkonen nicht gestattet.",
            "Das Grillen mit Holzkohle ist auf den Balkonen untersagt.",
            "",
        ),
        ("Les stagiaires n'ont pas droit au télétravail.", "Les stagiaires sont exclus du télétravail.", ""),
        ("Não é permitido fumar no átrio.", "É proibido fumar no átrio.", ""),
        (
            "Las visitas duran una hora y no están incluidas en el precio: cuestan 4 euros.",
            "Las visitas duran una hora y cuestan 4 euros.",
            "",
        ),
        (
            "Nach acht Jahren beträgt die Frist neun Monate.",
            "Nach acht Jahren beträgt die Frist neun Monate, also auch nach zehn Jahren.",
            "Welche Frist gilt nach zehn Jahren?",
        ),
        (
            "After eight weeks, blood pressure fell by 12 mmHg in the Doravil group.",
            "Blood pressure fell by 12 mmHg after eight weeks.",
            "",
        ),
        (
            "After opening, use the bottle within 90 days.",
            "Once it is open, it should be used within 90 days.",
            "",
        ),
    ],
)
async def test_right_answers_in_other_words_do_not_contradict(context: str, response: str, question: str) -> None:
    outcome = await adherence(context, response, question)
    explanation = str(outcome.explanation) if isinstance(outcome, Score) else ""
    assert "where the context says" not in explanation
    assert "which does not fit" not in explanation


@pytest.mark.parametrize("opening", ["Sorry to hear that!", "I'm sorry to hear this."])
async def test_sympathy_is_no_claim(opening: str) -> None:
    context = "Theft has to be reported to the police within 24 hours."
    assert await label(context, f"{opening} Report the theft to the police within 24 hours.") == "pass"


async def test_most_of_the_written_answers_are_decided_and_more_of_them_right_than_wrong() -> None:
    metric = ContextAdherence(OverlapJudge(), polls=1, causes=False)
    rows = [json.loads(line) for line in WRITTEN.read_text("utf-8").splitlines()]
    said: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        record = RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"])
        outcome = await metric.score(record)
        if isinstance(outcome, Score):
            said[row["supported"]].append((outcome.label == "pass") == row["supported"])
    assert sum(map(len, said.values())) >= len(rows) * 2 / 3
    assert sum(sum(right) / len(right) for right in said.values()) / 2 >= 0.65
