"""The verifier as metrics ask it."""

from __future__ import annotations

import pytest

from ragspan.records import RagRecord
from ragspan_hhem import HHEMVerifier

PASSAGES = ["The Nile is 6650 km long.", " ", "The Nile ends in Egypt.", "Bread is baked of flour."]
CLAIMS = ["The Nile is long.", "It begins in France.", "Bread is blue"]


@pytest.fixture
def record():
    return RagRecord(question="How long is the Nile?", contexts=PASSAGES, response="It is long.")


@pytest.fixture
def make_verifier(tiny_model):
    def make(**options):
        return HHEMVerifier(**{"model": str(tiny_model.folder), "reference_check": False, **options})

    return make


@pytest.fixture
def joined(tiny_model):
    """By claim, the probability that all passages together support it, by the published formula."""
    premise = "\n".join(PASSAGES)
    return [tiny_model.probability(premise, claim) for claim in CLAIMS]


async def test_each_claim_gets_its_probability_over_all_passages_together(make_verifier, record, joined):
    verdicts = await make_verifier().verify_claims(record, CLAIMS)

    assert [verdict.probability for verdict in verdicts] == pytest.approx(joined, abs=1e-5)
    assert [(verdict.index, verdict.claim) for verdict in verdicts] == [*enumerate(CLAIMS)]
    assert verdicts[0].explanation == f"the contexts support it with a probability of {joined[0]:.2f}"


async def test_a_claim_on_the_threshold_is_supported(make_verifier, record):
    [verdict] = await make_verifier(threshold=0).verify_claims(record, CLAIMS[:1])
    [at] = await make_verifier(threshold=verdict.probability).verify_claims(record, CLAIMS[:1])
    [above] = await make_verifier(threshold=verdict.probability + 1e-9).verify_claims(record, CLAIMS[:1])

    assert [at.supported, above.supported] == [True, False]


def test_verifiers_that_want_the_same_share_one_model(make_verifier):
    assert make_verifier()._computer is make_verifier(threshold=0.7)._computer
    assert make_verifier()._computer is not make_verifier(max_tokens=512)._computer
