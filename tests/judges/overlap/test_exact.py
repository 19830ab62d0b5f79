"""Numbers in their place, directions and identifiers: exact in responses of any length and in any language."""

from __future__ import annotations

import pytest

from ragspan import RagRecord
from ragspan.metrics import ContextAdherence

LEAVE = (
    "Remote work is limited to two days a week, and Tuesday is a day in the office for all. Requests are answered within fifteen days. "
    "The timeout was reduced from 300 to 30 seconds in version 5.4.1. Signatures use HMAC with SHA-256. The 401K plan is open to all staff."
)
TELETRAVAIL = "Le t\u00e9l\u00e9travail est limit\u00e9 \u00e0 deux jours par semaine, le mardi \u00e9tant un jour de pr\u00e9sence obligatoire pour tous. Le responsable r\u00e9pond sous quinze jours."


@pytest.mark.parametrize(
    ("context", "response"),
    [
        (LEAVE, "You may work remotely. Three days a week are allowed, except Tuesday. Requests are answered within fifteen days."),
        (LEAVE, "The timeout was changed. It was reduced from 30 to 300 seconds. That came with version 5.4.1."),
        (LEAVE, "Signatures are used. They are HMAC with SHA512. Requests are answered within fifteen days."),
        (TELETRAVAIL, "Le t\u00e9l\u00e9travail est limit\u00e9 \u00e0 trois jours par semaine, le mardi \u00e9tant obligatoire."),
    ],
)  # fmt: skip
async def test_the_sentence_with_another_one_is_not_supported(judge, context, response):
    record = RagRecord(question="What are the rules?", contexts=[context], response=response)

    verdicts = await judge.verify_claims(record, await judge.extract_claims(record))

    assert "unsupported" in {verdict.verdict for verdict in verdicts}


@pytest.mark.parametrize(
    ("context", "response"),
    [
        (LEAVE, "Two days a week are allowed, except Tuesday. Requests are answered within fifteen days."),
        (LEAVE, "The timeout was reduced from 300 to 30 seconds in version 5.4.1."),
        (LEAVE, "Signatures use HMAC with SHA256."),
        (LEAVE, "The 401(k) plan is open to all staff."),
        ("Fragments date from as early as 125, disproving the theory of 52 disproving scholars.", "Fragments date from as early as 125, disproving the theory of scholars."),
        (TELETRAVAIL, "Le t\u00e9l\u00e9travail est limit\u00e9 \u00e0 deux jours par semaine. Le responsable r\u00e9pond sous quinze jours."),
    ],
)  # fmt: skip
async def test_what_the_context_has_passes(judge, context, response):
    record = RagRecord(question="What are the rules?", contexts=[context], response=response)

    assert (await ContextAdherence(judge, causes=False).score(record)).label == "pass"


async def test_a_name_beside_one_that_the_context_has_is_no_invention_and_one_by_itself_is(adherence):
    where = ["The O2 Arena is on the Greenwich peninsula in London, England."]

    assert await adherence("The O2 Arena is on the Greenwich peninsula in Southeast London.", contexts=where) > 0.5
    assert await adherence("The O2 Arena is on the Greenwich peninsula in Essex.", contexts=where) < 0.5


async def test_a_sentence_that_only_announces_a_list_is_no_claim(judge):
    record = RagRecord(
        question="What does it do?",
        contexts=["It saves time."],
        response="The advantages of it are:\n\n- It saves time.",
    )

    assert await judge.extract_claims(record) == ["It saves time."]
