"""What a language model is asked about documents that did not reach the prompt."""

from __future__ import annotations

import pytest

from ragspan.judges.judge_protocols import ClaimSupport

CLAIMS = ["The Bears won it.", "It rained.", "The stadium was full."]
DOCUMENTS = ["The Bears won the final.", "It was sunny."]


@pytest.fixture
def sources(reply):
    """Makes a reply with a verdict and a document for each (number, verdict, document)."""

    def make(*findings):
        return reply(
            statement_sources=[
                {"number": number, "reasoning": "r", "verdict": verdict, "document": document}
                for number, verdict, document in findings
            ]
        )

    return make


async def test_what_the_model_leaves_out_or_gets_wrong_is_not_asked_for_again(scripted, sources, super_bowl):
    judge, client = scripted([sources((1, "document", 9), (7, "nothing", 0))])

    assert await judge.find_support(super_bowl, CLAIMS, DOCUMENTS) == []
    assert len(client.requests) == 1


async def test_without_claims_the_sentences_of_the_response_are_asked_about(scripted, sources, super_bowl):
    judge, client = scripted([sources((2, "nothing", 0))])

    found = await judge.find_support(super_bowl, None, DOCUMENTS)

    assert found == [ClaimSupport(claim="The Chicago Bears won it.", document=None)]
    assert "1. The first Super Bowl was played on January 15, 1967.\n2. The Chicago Bears won it." in client.tasks[0]


async def test_where_documents_do_not_fit_nothing_is_called_unsupported(scripted, sources, super_bowl):
    judge, client = scripted([sources((1, "document", 1), (2, "nothing", 0))], max_context_chars=2000)

    found = await judge.find_support(super_bowl, CLAIMS, ["The Bears won the final. " * 100, "It was sunny."])

    assert found == [ClaimSupport(claim=CLAIMS[0], document=0)]
    assert len(client.tasks[0]) < 3000
