"""Rows of tables are facts, in contexts and in answers: the right row supports, and a value of another row contradicts."""

from __future__ import annotations

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import Score

PLANS = """Our plans at a glance.

| Plan | Price per month | Storage | Seats | SSO |
| --- | ---: | --- | --- | --- |
| Basic | $5 | 10 GB | 12 | no |
| Pro | $20 | 50 GB | 45 | yes |
| Pro Plus | $40 | 100 GB | 80 | yes |

Prices are without tax."""
STOCK = "item,stock,price,colour\nWidget,12,10,red\nGadget,45,30,blue\nGizmo,17,25,green"
PEOPLE = (
    "<p>Contacts</p><table><thead><tr><th>Name</th><th>Office</th><th>Extension</th></tr></thead><tbody>"
    "<tr><td>Dana Reyes</td><td>Lisbon</td><td>4410</td></tr><tr><td>Ivo Marin</td><td>Zagreb</td><td>4417</td></tr></tbody></table>"
)
FEATURES = "| Feature | Basic | Pro |\n|---|---|---|\n| Backups | 7 days | 30 days |\n| Support hours | 9 to 17 | around the clock |"
CITIES = '{"cities": [{"id": 1, "name": "Porto", "country": "Portugal", "stats": {"population": 231800, "area_km2": 41}}, {"id": 2, "name": "Turin", "country": "Italy", "stats": {"population": 841600, "area_km2": 130}}]}'
REGIONS = '{"regions": {"eu-west": {"latency_ms": 18, "replicated": true}, "us-east": {"latency_ms": 95, "replicated": false}}}'
LOG = '{"job": "import", "minutes": 14, "status": "failed"}\n{"job": "export", "minutes": 62, "status": "done"}'
CONFIG = '{"min_replicas": 2, "max_replicas": 10, "timeout_seconds": 30, "database": {"port": 5432}, "cache": {"port": 6379}}'
YEARS = "Year;Revenue (million EUR);Staff\n2021;53;410\n2022;61;455\n2023;58;520"
TWO = "| City | Opened |\n|---|---|\n| Porto | 1998 |\n| Turin | 2004 |\n\nClosures:\n\n| City | Closed |\n|---|---|\n| Porto | 2011 |\n| Turin | 2019 |"

RIGHT = [
    (PLANS, "The Pro plan costs $20 a month."),
    (PLANS, "Basic comes with 10 GB of storage, and Pro with 50 GB."),
    (PLANS, "Basic and Pro cost $5 and $20 respectively."),
    (PLANS, "With Basic you get 10 GB, but for 100 GB you need Pro Plus."),
    (PLANS, "SSO is part of Pro, but Basic has no SSO."),
    (PLANS, "Basic is cheaper than Pro."),
    (PLANS, "The cheapest plan is Basic."),
    (PLANS, "| Plan | Price |\n|---|---|\n| Basic | $5 |\n| Pro Plus | $40 |"),
    (PLANS, "- **Basic:** $5\n- **Pro:** $20"),
    (STOCK, "There are 45 Gadgets in stock."),
    (STOCK, "The Widget costs 10."),
    (STOCK, "The Gizmo is green."),
    (PEOPLE, "Dana Reyes works in Lisbon; her extension is 4410."),
    (FEATURES, "Backups are kept for 30 days with Pro."),
    (CITIES, "Turin has a population of 841,600."),
    (CITIES, "Porto is in Portugal."),
    (REGIONS, "The latency of eu-west is 18 ms."),
    (LOG, "The export took 62 minutes."),
    (CONFIG, "The maximum is 10 replicas."),
    (CONFIG, "The database port is 5432."),
    (YEARS, "In 2022 revenue was 61 million euros."),
    (TWO, "The Turin office opened in 2004."),
    (TWO, "Porto closed in 2011."),
    (CITIES, '```json\n{"name": "Porto", "population": 231800}\n```'),
]
WRONG = [
    (PLANS, "The Pro plan costs $5 a month."),
    (PLANS, "Basic comes with 50 GB of storage, and Pro with 10 GB."),
    (PLANS, "Basic and Pro cost $20 and $5 respectively."),
    (PLANS, "With Basic you get 100 GB, but for 10 GB you need Pro Plus."),
    (PLANS, "SSO is part of Basic."),
    (PLANS, "Pro does not include SSO."),
    (PLANS, "Pro is cheaper than Basic."),
    (PLANS, "The cheapest plan is Pro."),
    (PLANS, "| Plan | Price |\n|---|---|\n| Basic | $40 |\n| Pro Plus | $5 |"),
    (PLANS, "- **Basic:** $20\n- **Pro:** $5"),
    (STOCK, "There are 12 Gadgets in stock."),
    (STOCK, "The Widget costs 30."),
    (STOCK, "The Widget has a stock of 10."),
    (STOCK, "The Gizmo is blue."),
    (PEOPLE, "Dana Reyes works in Zagreb."),
    (PEOPLE, "The extension of Ivo Marin is 4410."),
    (CITIES, "Turin has a population of 231,800."),
    (CITIES, "Porto is in Italy."),
    (REGIONS, "The latency of eu-west is 95 ms."),
    (REGIONS, "The region us-east is replicated."),
    (LOG, "The export took 14 minutes."),
    (CONFIG, "The maximum is 2 replicas."),
    (CONFIG, "The timeout is 10 seconds."),
    (CONFIG, "The database port is 6379."),
    (YEARS, "In 2022 revenue was 58 million euros."),
    (TWO, "The Turin office opened in 1998."),
    (TWO, "Porto closed in 2019."),
    (CITIES, '```json\n{"name": "Porto", "population": 841600}\n```'),
    (PLANS, "plan,price,storage\nBasic,$20,10 GB\nPro,$5,50 GB"),
]


async def labels_of(contexts, response):
    record = RagRecord(question="What does the table say?", contexts=contexts, response=response)
    outcomes = [await metric(OverlapJudge(), causes=False).score(record) for metric in (ContextAdherence, Faithfulness)]
    assert all(isinstance(outcome, Score) for outcome in outcomes)
    return {outcome.label for outcome in outcomes}


@pytest.mark.parametrize(("table", "response"), RIGHT)
async def test_what_a_row_says_passes(table, response):
    assert await labels_of([table], response) == {"pass"}


@pytest.mark.parametrize(("table", "response"), WRONG)
async def test_a_value_of_another_row_fails(table, response):
    assert await labels_of([table], response) == {"fail"}


async def test_the_explanation_gives_row_and_column(judge):
    record = RagRecord(question="How much is Pro?", contexts=[PLANS], response="The Pro plan costs $5 a month.")

    (verdict,) = await judge.verify_claims(record, await judge.extract_claims(record))

    assert verdict.explanation == 'says "Pro: $5" where the context says "Pro: Price per month $20"'


async def test_a_sentence_elsewhere_that_says_the_same_as_the_response_outweighs_the_table():
    assert await labels_of(
        [PLANS, "From June on the Pro plan costs $5 a month."], "The Pro plan costs $5 a month."
    ) == {"pass"}


async def test_a_table_in_the_response_is_compared_with_prose():
    prose = "The Basic plan costs $5 per month and the Pro plan $20 per month."

    assert await labels_of([prose], "| Plan | Price |\n|---|---|\n| Basic | $5 |\n| Pro | $20 |") == {"pass"}
    assert await labels_of([prose], "| Plan | Price |\n|---|---|\n| Basic | $20 |\n| Pro | $5 |") == {"fail"}


@pytest.mark.parametrize(
    ("response", "label"),
    [("Pets are not allowed.", "pass"), ("Pets are allowed.", "fail"), ("No pets allowed.", "pass")],
)
async def test_a_flag_with_a_denial_between_its_words(response, label):
    assert await labels_of(['{"pets_allowed": false, "breakfast": "continental"}'], response) == {label}


@pytest.mark.parametrize(
    ("language", "table", "right", "wrong"),
    [
        ("de", "| Tarif | Preis |\n|---|---|\n| Klein | 5,90 € |\n| Groß | 19,90 € |", "Der Tarif Klein kostet 5,90 €.", "Der Tarif Klein kostet 19,90 €."),
        ("fr", "Ville;Ouverture\nNantes;1998\nLille;2004\nMetz;2011", "La ville de Lille : ouverture en 2004.", "La ville de Lille : ouverture en 1998."),
    ],
)  # fmt: skip
async def test_rows_in_other_languages(language, table, right, wrong):
    assert (await labels_of([table], right), await labels_of([table], wrong)) == ({"pass"}, {"fail"})
