"""Answers in the user's own words, which the contexts support, pass; and none of them does with one thing changed."""

from __future__ import annotations

import pytest

from ragspan.judges.overlap.abbreviations import as_in_contexts
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.records import RagRecord
from ragspan.text.sentences import read_sentence

RESET = """To reset your password, open the sign-in page and choose "Forgot password". We send a link to your registered
 email address. The link expires after 24 hours."""
GDPR = """The General Data Protection Regulation applies to companies outside the European Union if they offer goods or
 services to people in the Union. A data breach must be reported to the supervisory authority within 72 hours."""
WHO = """The World Health Organization is a specialized agency of the United Nations responsible for international public
 health. It was founded on 7 April 1948 and has its headquarters in Geneva, Switzerland."""
DESCALING = """Descale the machine every three months or when the orange light flashes. Do not use vinegar, because it
 damages the seals."""
EXPENSES = """Travel expenses are reimbursed within ten working days after the expense report has been approved. Receipts are
 required for all expenses above €25. Alcohol is not reimbursed."""
PORTUGAL = (
    """Portugal lies on the Iberian Peninsula, to the west of Spain. The country has about 10.3 million inhabitants."""
)
TABLETS = "Adults take one tablet every six hours, up to three times a day, with a glass of water."
PARTS = "All removable parts except the blade are dishwasher safe. Wash the blade by hand with a mild detergent."


async def labels_of(judge, context, response):
    record = RagRecord(question="What does it say?", contexts=[" ".join(context.split())], response=response)
    return {(await metric(judge).score(record)).label for metric in (ContextAdherence, Faithfulness)}


@pytest.mark.parametrize(
    ("context", "response"),
    [
        (RESET, 'Yes, you can reset it yourself: choose "Forgot password" on the sign-in page.'),
        (
            GDPR,
            "Yes, the GDPR also applies to companies outside the EU that offer goods or services to people in the EU.",
        ),
        (GDPR, "A breach has to be reported within 3 days."),
        (WHO, "The WHO is a UN agency that is responsible for public health worldwide."),
        (WHO, "WHO was founded in April 1948."),
        (DESCALING, "You should descale it every three months, or whenever the orange light starts flashing."),
        (DESCALING, "No, vinegar should not be used since it can harm the seals."),
        (EXPENSES, "Once your expense report is approved, you get your money back within 10 business days."),
        (EXPENSES, "You'll need a receipt for anything over 25 euros."),
        (PORTUGAL, "Spain lies east of Portugal."),
        (PORTUGAL, "Roughly 10.3 million people live in Portugal."),
        (PARTS, "Everything that can be removed can go in the dishwasher, apart from the blade."),
        (PARTS, "The blade needs to be hand-washed."),
        (TABLETS, "You can take 1 tablet every 6 hours, as often as 3 times a day."),
    ],
)
async def test_a_right_answer_in_other_words_passes(judge, context, response):
    assert await labels_of(judge, context, response) == {"pass"}


@pytest.mark.parametrize(
    ("context", "response"),
    [
        (RESET, "The reset link expires after 48 hours."),
        (GDPR, "The GDPR does not apply to companies outside the EU."),
        (GDPR, "A breach has to be reported within 5 days."),
        (WHO, "The WHO has its headquarters in New York."),
        (DESCALING, "Descale the machine when the green light flashes."),
        (EXPENSES, "Receipts are required for all expenses above €50."),
        (PORTUGAL, "Portugal lies to the east of Spain."),
        (PARTS, "The blade is dishwasher safe."),
    ],
)
async def test_one_with_something_changed_fails(judge, context, response):
    assert await labels_of(judge, context, response) == {"fail"}


async def test_names_are_read_as_the_contexts_write_them_in_both_directions(judge):
    context = "The WHO is based in Geneva."

    assert await labels_of(judge, context, "The World Health Organization is based in Geneva.") == {"pass"}
    assert await labels_of(judge, context, "The World Health Organization is based in Rome.") == {"fail"}


def test_words_that_happen_to_have_a_names_initials_are_not_that_name():
    claim = read_sentence("The WHO is in Geneva.")

    assert as_in_contexts([claim], ["When the hotel opens, guests can check in."]) == (claim,)
    assert as_in_contexts([claim], ["We have one hotel, and the World Health\nOrganization."])[0].text == claim.text
    assert (
        as_in_contexts([claim], ["the World Health\nOrganization"])[0].read
        == "The World Health\nOrganization is in Geneva."
    )


async def test_a_claim_is_quoted_as_the_response_writes_it(judge):
    record = RagRecord(question="Where?", contexts=[WHO], response="The WHO is based in Geneva.")

    assert await judge.extract_claims(record) == ["The WHO is based in Geneva."]
