"""A response in another language than its contexts: what can be compared is, and what cannot be does not apply."""

from __future__ import annotations

import pytest

from ragspan.judges.overlap import OverlapJudge
from ragspan.metrics import ChunkAttribution, Completeness, ContextAdherence, ContextRelevance, Faithfulness
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import RagRecord
from ragspan.text.languages import languages_of

SHOP = "Returns are possible within 30 days of the purchase. The shop is in Berlin and is run by Maria Keller."
RETURNS = "Возврат возможен в течение 30 дней после покупки, если товар не был в употреблении."


@pytest.fixture
def score():
    async def of(metric, response, *contexts, question="Wie lange kann ich den Artikel zurückgeben?"):
        return await metric(OverlapJudge()).score(RagRecord(question=question, contexts=contexts, response=response))

    return of


@pytest.mark.parametrize("metric", [ContextAdherence, Faithfulness])
@pytest.mark.parametrize(
    ("right", "wrong", "context"),
    [
        ("Die Rückgabe ist innerhalb von 30 Tagen möglich.", "Die Rückgabe ist innerhalb von 90 Tagen möglich.", SHOP),
        ("退货可在30天内进行。", "退货可在90天内进行。", RETURNS),
        ("退货可在三十天内进行。", "退货可在九十天内进行。", RETURNS),
        (
            "La tienda de Berlin es de la señora Keller y no de otra.",
            "La tienda de Madrid es de la señora Torres y no de otra.",
            SHOP,
        ),
    ],
)
async def test_numbers_and_names_are_compared_across_languages(score, metric, right, wrong, context):
    passed, failed = await score(metric, right, context), await score(metric, wrong, context)

    assert isinstance(passed, Score)
    assert isinstance(failed, Score)
    assert (passed.label, failed.label) == ("pass", "fail")


async def test_the_explanation_says_that_only_numbers_and_names_were_compared(score):
    scored = await score(ContextAdherence, "Die Rückgabe ist innerhalb von 90 Tagen möglich.", SHOP)

    assert "only numbers and names were compared" in scored.explanation
    assert "the response is in German and the contexts are in English" in scored.explanation
    assert "90" in scored.explanation


@pytest.mark.parametrize("metric", [ContextAdherence, Faithfulness, Completeness, ChunkAttribution])
async def test_a_response_with_nothing_to_compare_does_not_apply(score, metric):
    outcome = await score(metric, "Die Rückgabe ist nach dem Kauf möglich, wenn der Laden offen ist.", SHOP)

    assert isinstance(outcome, NotApplicable)
    assert outcome.reason == "language"


@pytest.mark.parametrize("metric", [Completeness, ChunkAttribution])
async def test_what_needs_words_does_not_apply_though_there_are_numbers(score, metric):
    assert isinstance(await score(metric, "Die Rückgabe ist innerhalb von 30 Tagen möglich.", SHOP), NotApplicable)


async def test_a_question_in_another_language_than_the_contexts_has_no_context_relevance(score):
    response = "Returns are possible within 30 days."

    assert isinstance(await score(ContextRelevance, response, SHOP), NotApplicable)
    assert isinstance(await score(ContextRelevance, response, SHOP, question="Where is the shop?"), Score)
    assert isinstance(await score(ContextAdherence, response, SHOP), Score)


@pytest.mark.parametrize(
    ("response", "contexts"),
    [
        ("Maria Keller", [RETURNS, SHOP]),
        ("Berlin", ["Магазин находится в городе Berlin, и он открыт с 9 до 17 часов."]),
        ("Apple Watch Ultra 2 mit GPS", ["Die Apple Watch Ultra 2 ist mit GPS und nicht mit Mobilfunk zu haben."]),
        ("Der Preis steht nicht in der Tabelle.", [SHOP, "Der Preis ist in der Tabelle nicht angegeben."]),
        ('Keine Angabe zu "WiFi".', ['{"WiFi": null}']),
        ("", [SHOP]),
        ("42", [RETURNS]),
        ("It is in the shop, and the shop is open.", []),
    ],
)
def test_names_numbers_and_texts_that_do_not_tell_are_no_sign_of_another_language(response, contexts):
    assert languages_of(response, contexts).are_comparable


@pytest.mark.parametrize(
    ("response", "context"),
    [
        ("Возврат возможен", SHOP),
        ("Возврат возможен в течение дней", "La tienda de la señora no es de Berlín, y los días son de la semana."),
        (
            "Die Rückgabe ist nicht möglich, wenn der Laden zu ist.",
            "L'article ne peut pas être rendu dans les magasins de la ville.",
        ),
    ],
)
def test_another_script_or_other_function_words_are_another_language(response, context):
    assert not languages_of(response, [context]).are_comparable
