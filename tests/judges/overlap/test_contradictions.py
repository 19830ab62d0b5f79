"""What a response says otherwise than its contexts: found, named with both sides, and not found where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan.judges.overlap.analysis import Analysis
from ragspan.judges.overlap.english import english
from ragspan.judges.overlap.explanations import explain_contradiction
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.records import RagRecord

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "benchmarks" / "contrast_pairs.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture
def contradictions():
    """The contradictions of a response of one sentence, as they are explained."""

    def found(response, *contexts, question=""):
        analysis = Analysis(RagRecord(question=question, contexts=contexts, response=response))
        return [explain_contradiction(one, analysis) for grade in analysis.grades for one in grade.contradictions]

    return found


@pytest.mark.parametrize(
    ("context", "response", "expected"),
    [
        (
            "Refunds are granted within 30 days of purchase if the item is unused.",
            "You can get a refund within 90 days of purchase.",
            'says "90 days" where the context says "30 days"',
        ),
        (
            "The bridge was opened to traffic on 27 May 1937.",
            "The bridge was opened on May 27, 1973.",
            'says "1973" where the context says "1937"',
        ),
        (
            "Operate the device at temperatures between 5 and 35 degrees Celsius.",
            "It may be operated between 5 and 35 °F.",
            'says "35 F" where the context says "35 degrees Celsius"',
        ),
        (
            "The rate limit is 100 requests per minute.",
            "The rate limit is 100 requests per second.",
            'says "100 requests per second" where the context says "100 requests per minute"',
        ),
        (
            "Sales increased by 12 percent in 2023 compared with 2022.",
            "Sales fell by 12 percent in 2023.",
            'says "fell" where the context says "increased"',
        ),
        (
            "Payments are processed by Stripe.",
            "Payments are processed by PayPal.",
            'says "PayPal" where the context says "Stripe"',
        ),
        (
            "The Basic plan includes 5 GB of storage and email support.",
            "The Basic plan includes 5 GB of storage, email support and a free domain.",
            'says "and a free domain", and the context does not',
        ),
    ],
)
def test_both_sides_of_a_contradiction_are_named(contradictions, context, response, expected):
    assert expected in contradictions(response, context)


@pytest.mark.parametrize(
    ("context", "response"),
    [
        ("This medicine must not be taken with alcohol.", "It may be taken with alcohol."),
        ("The museum is open every day except Monday.", "The museum is open on Mondays."),
        ("The booking fee is non-refundable.", "The booking fee is refundable."),
        ("In 2014 Facebook acquired WhatsApp for 19 billion dollars.", "WhatsApp acquired Facebook in 2014."),
        ("Acme moved its headquarters from Boston to Denver in 2019.", "Acme's headquarters is in Boston."),
        ("All new employees must attend the safety training.", "Only some new employees attend the safety training."),
        ("Visitors may wear a helmet, but it is not required.", "Visitors are required to wear a helmet."),
        ("Jupiter is larger than Saturn.", "Saturn is larger than Jupiter."),
        ("Plan A is cheaper than Plan B.", "Plan B is cheaper than Plan A."),
        (
            "The north route is longer but safer than the south route.",
            "The south route is longer than the north route.",
        ),
        ("The clinic is closed on Wednesdays and Sundays.", "The clinic is open on Wednesdays."),
        ("The rocket launch succeeded.", "The rocket launch failed."),
        ("Supported formats are PNG, JPEG and WebP.", "PNG, JPEG and GIF are supported."),
        ("Group A meets on Monday and group B meets on Tuesday.", "Group B meets on Monday."),
        ("The treaty was signed in 1992 and came into force in 1995.", "The treaty was signed in 1995."),
        ("Oslo is the largest city in Norway.", "Bergen is the largest city in Norway."),
        ("The Danube flows through Linz and Vienna into the Black Sea.", "The Danube flows into the North Sea."),
        ("Trains from Lyon to Paris take two hours.", "Trains from Paris to Lyon take two hours."),
        ("Dr. Patel performed the surgery; Dr. Kim assisted.", "Dr. Kim performed the surgery."),
        ("Half of the tickets are sold online.", "Most of the tickets are sold online."),
        ("Smoking is prohibited in all rooms.", "Guests may smoke in all rooms."),
        ("Unplug the machine before opening the cover.", "Unplug the machine after opening the cover."),
        ("The Pro plan has 5 seats, the Team plan has 20 seats.", "The Pro plan has 20 seats."),
        ("The scheduler sends jobs to the workers.", "The workers send jobs to the scheduler."),
        ("The club fined the captain. The referee warned him.", "The captain was fined by the referee."),
        ("The court believed the witness and sentenced the mayor.", "The witness was sentenced."),
        ("Writes go to the primary server, and reads are served by the replica.", "Writes go to the replica."),
        (
            "The requests are reviewed by the billing team. The support team answers.",
            "The requests are reviewed by the support team.",
        ),
        ("Butter can be replaced by oil.", "Butter can replace oil."),
        (
            "The loan can be extended unless somebody has reserved the book.",
            "It can be extended if somebody has reserved it.",
        ),
        ("Before meals, take two tablets.", "Take two tablets after meals."),
        ("Most participants completed the study, and few reported nausea.", "Most participants reported nausea."),
        ("Only refunds above 200 euros need approval.", "All refunds need approval."),
        ("The cache is disabled in development mode.", "The cache is turned on in development mode."),
        ("Readers may extend a loan.", "Readers must extend a loan."),
        ("The home team had more shots.", "The home team had fewer shots."),
        (
            "The pressure is 2.3 bar for the front wheels and 2.5 bar for the rear wheels.",
            "The pressure is 2.5 bar for the front wheels and 2.3 bar for the rear wheels.",
        ),
        (
            "Do not take this medicine during the last three months of pregnancy.",
            "The tablets can be taken during the last three months of pregnancy.",
        ),
        ("The company kept its forecast unchanged.", "The company raised its forecast."),
        (
            "The fine is 4 % or 20 million euros, whichever is higher.",
            "The fine is 4 % or 20 million euros, whichever is lower.",
        ),
        ("Portugal lies to the west of Spain.", "Portugal lies to the east of Spain."),
    ],
)
def test_what_says_otherwise_is_found(contradictions, context, response):
    assert contradictions(response, context)
    assert not contradictions(context, context)


@pytest.mark.parametrize(
    ("context", "response"),
    [
        ("Contoso was bought by Northwind.", "Northwind bought Contoso."),
        ("The warranty does not cover damage caused by water.", "Water damage is not covered by the warranty."),
        ("The museum is open every day except Monday.", "The museum is closed on Mondays."),
        ("The judge refused the request for bail.", "The judge did not grant the request for bail."),
        ("The trial period lasts fourteen days.", "The trial lasts two weeks."),
        ("Lunch is served from noon to 2 p.m.", "Lunch is served between 12:00 and 14:00."),
        ("The Basic plan includes 5 GB of storage and 10 users.", "The Basic plan includes 10 users."),
        ("It covers fire damage but not water damage.", "Fire damage is covered."),
        ("Jupiter is larger than Saturn.", "Saturn is smaller than Jupiter."),
        ("The army crossed the river before it attacked.", "After crossing the river, the army attacked."),
        ("First add the milk, then add the sugar.", "Add the sugar after the milk."),
        ("The company employs many people.", "The company has many employees."),
        ("Group A meets on Monday and group B meets on Tuesday.", "Group B meets on Tuesday."),
        ("The clinic is open from Monday to Friday.", "The clinic closes on Fridays."),
        ("The warranty does not cover water damage.", "The warranty excludes water damage."),
        ("The first backup failed, the second one completed.", "The first backup failed."),
        ("The Danube flows through Linz and Vienna into the Black Sea.", "The Danube flows into the Black Sea."),
        (
            "Between November and March the heating must be kept at 12 °C.",
            "In winter (November-March) you keep the heating at 12 °C.",
        ),
        ("They met in Cambridge after work.", "They met in Cambridge, MA, after work."),
        ("The dose is 2 tablets for adults. Children take 1 tablet.", "Children take 1 tablet."),
        ("The club fined the captain. The referee warned him.", "The captain was fined by the club."),
        ("Martin overtook Weber on the last lap.", "Weber was overtaken by Martin on the last lap."),
        ("Gift cards and downloads cannot be returned.", "Gift cards cannot be returned."),
        ("The treasurer resigned in March, and the chairman stayed in office.", "The chairman did not resign."),
        ("A worker that does not answer is removed by the scheduler.", "The scheduler removes the worker."),
        (
            "A loan can be extended unless somebody has reserved the book.",
            "It cannot be extended if somebody has reserved it.",
        ),
        ("The company sold its hardware division. Northwind is a company.", "Northwind sold its hardware division."),
        ("The command deletes the index but keeps the documents.", "The documents are not deleted."),
        ("The cache is disabled in development mode.", "The cache is turned off in development mode."),
        ("Basic costs $9 a month, Pro costs $29.", "Pro costs $29 a month."),
        ("Portugal lies to the west of Spain.", "Spain lies east of Portugal."),
        ("A data breach must be reported within 72 hours.", "A breach has to be reported within 3 days."),
        ("Sale items can only be exchanged, not refunded.", "You can only exchange sale items."),
        ("Only users with the Maintainer role can roll back.", "You have to be a Maintainer to roll back."),
        ("Please include the original receipt in the parcel.", "Put the original receipt in the package."),
        ("The account unlocks after 30 minutes.", "The account unlocks after half an hour."),
    ],
)
def test_what_says_the_same_in_other_words_is_no_contradiction(contradictions, context, response):
    assert contradictions(response, context) == []


def test_a_number_that_another_context_gives_is_no_contradiction(contradictions):
    contexts = ["The trial lasts 30 days in Europe.", "The trial lasts 60 days in Asia."]

    assert contradictions("The trial lasts 60 days in Asia.", *contexts) == []


async def test_a_contradiction_fails_however_well_the_rest_is_covered(judge):
    context = "The parcel is insured. Refunds are granted within 30 days of purchase. Returns are free of charge."
    response = "The parcel is insured. Refunds are granted within 90 days of purchase. Returns are free of charge."
    record = RagRecord(question="How long?", contexts=[context], response=response)

    adherence = await ContextAdherence(judge).score(record)
    faithfulness = await Faithfulness(judge).score(record)

    assert adherence.value < 0.4
    assert (adherence.label, faithfulness.label) == ("fail", "fail")
    for score in (adherence, faithfulness):
        assert 'says "90 days" where the context says "30 days"' in score.explanation


def test_most_pairs_of_the_contrast_benchmark_are_told_apart():
    def passes(pair, response):
        contexts = pair.get("contexts") or [pair["passage"]]
        return Analysis(RagRecord(question=pair["question"], contexts=contexts, response=response)).grounding >= 0.5

    right = [passes(pair, pair["right"]) for pair in PAIRS]
    caught = [not passes(pair, pair["wrong"]) for pair in PAIRS]

    assert len(PAIRS) >= 150
    assert sum(right) >= 0.9 * len(PAIRS)
    assert sum(caught) >= 0.85 * len(PAIRS)


def test_there_are_hundreds_of_opposites_and_none_is_its_own():
    opposites = english().opposites

    assert sum(map(len, opposites.values())) / 2 >= 400
    assert all(word not in others for word, others in opposites.items())
    assert all(word in opposites[other] for word, others in opposites.items() for other in others)
