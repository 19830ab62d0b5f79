from __future__ import annotations

import json

import pytest
from fakes import FakeJudge

from ragspan.judges import OpenAIJudge, OverlapJudge
from ragspan.metrics import CitationCorrectness
from ragspan.metrics.citation_correctness import citations_of
from ragspan.outcomes import NotApplicable
from ragspan.records import RagRecord, RetrievedContext

CONTEXTS = ["Shipping costs 4 euros.", "Returns take 30 days.", "The harbour is grey."]


def record(response, contexts=CONTEXTS):
    return RagRecord(question="What does it cost?", contexts=contexts, response=response)


def found(response, contexts=CONTEXTS):
    return [(one.context, one.sentence) for one in citations_of(record(response, contexts))]


SHIPPING, RETURNS = "Shipping costs 4 euros.", "Returns take 30 days."


@pytest.mark.parametrize(
    "mark", ["[1]", "[doc1]", "[Document 1]", "(source 1)", "[^1]", "¹", "^1", "【1†source】", "[ref: 1]"]
)
@pytest.mark.parametrize(
    "form", ["Shipping costs 4 euros{}. Returns take 30 days.", "Shipping costs 4 euros. {} Returns take 30 days."]
)
def test_a_mark_cites_a_context_for_the_sentence_that_it_ends_or_follows(mark, form):
    assert found(form.format(mark)) == [(0, SHIPPING)]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Shipping costs 4 euros [1][3]. Returns take 30 days [2].", [(0, SHIPPING), (2, SHIPPING), (1, RETURNS)]),
        ("Shipping costs 4 euros [1, 2].", [(0, SHIPPING), (1, SHIPPING)]),
        ("Shipping costs 4 euros [7].", [(None, SHIPPING)]),
        ("Shipping costs 4 euros [0]. Returns take 30 days [1].", [(0, SHIPPING), (1, RETURNS)]),
        ("Shipping costs 4 euros [1].\n\n[1] Price list\n[2]: https://example.com/a", [(0, SHIPPING)]),
        ("Shipping costs 4 euros.", []),
        ("The hall has 40 m² and 10³ seats.", []),
        ("See [the page](https://example.com/1) and [note].", []),
    ],
)
def test_what_cites_and_what_does_not(response, expected):
    assert found(response) == expected


def test_an_id_of_a_context_cites_it():
    contexts = [RetrievedContext(text=text, id=f"handbook-{at}") for at, text in enumerate(CONTEXTS)]

    assert found("Returns take 30 days [handbook-1].", contexts) == [(1, RETURNS)]


async def test_a_language_model_is_asked_about_all_citations_in_one_request(fake_openai):
    verdicts = [{"number": n, "reasoning": "r", "verdict": word} for n, word in ((1, "supported"), (2, "unsupported"))]
    fake_openai.script(citations=[verdicts])
    judge = OpenAIJudge("m", base_url=fake_openai.base_url, api_key="k")

    score = await CitationCorrectness(judge, threshold=0.5).score(
        record("Shipping costs 4 euros [1]. Returns take 30 days [3]. The harbour is old [9].")
    )

    assert (score.value, score.label, score.details["citations"]) == (1 / 3, "fail", 3)
    assert [one.verdict for one in score.evidence] == ["supported", "unsupported", "unsupported"]
    assert "[9] after “The harbour is old.” (there is no such context)" in score.explanation
    asked = fake_openai.requests[0]["messages"][0]["content"]
    assert '- "citations": each item names a context by its number and quotes a sentence' in asked
    assert "2. context 3: Returns take 30 days." in json.dumps(fake_openai.requests)


@pytest.mark.parametrize(("cited", "label"), [(1, "pass"), (3, "fail")])
async def test_the_embedded_judge_compares_with_the_cited_context_alone(cited, label):
    outcome = await CitationCorrectness(OverlapJudge()).score(record(f"Shipping costs 4 euros [{cited}]."))

    assert getattr(outcome, "label", getattr(outcome, "reason", None)) in {label, "cannot_tell"}


async def test_an_own_judge_is_asked_what_it_can_answer():
    cited = record("Shipping costs 4 euros [1]. " + "Returns take 30 days " * 5 + "[2][9].")
    score = await CitationCorrectness(FakeJudge(supported=[True])).score(cited)

    assert (score.value, score.judge, score.details) == (2 / 3, "fake", {"citations": 3, "unsure": 0})
    named = ("Returns take 30 days " * 5)[:80]
    assert score.explanation == f"1 of 3 citations unsupported: [9] after “{named}” (there is no such context)"
    assert [one.index for one in score.evidence] == [0, 1, 2]


async def test_without_citations_it_does_not_apply_and_unsure_ones_may_decide(fixed_judge):
    judge = FakeJudge(supported=[None])

    assert await CitationCorrectness(judge).score(record("Shipping.")) == NotApplicable(reason="no_citations")
    outcome = await CitationCorrectness(judge).score(record("Shipping costs 4 euros [1]."))
    lacking = await CitationCorrectness(fixed_judge()).score(record("Shipping costs 4 euros [1]."))
    assert lacking.message == "1 of 1 citations have no verdict"
    assert (outcome.reason, outcome.detail) == ("cannot_tell", "whether 1 of 1 citations are supported cannot be told")
