"""The model, loaded from its files, and the published pairs that it is checked with."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import pytest

from ragspan.exceptions import JudgeError
from ragspan_hhem.model import HHEM, REFERENCES, ModelChoice, check_references, load
from ragspan_hhem.prompt import FittedPair, Pair


@pytest.fixture
def choice(tiny_model):
    return ModelChoice(
        model=str(tiny_model.folder),
        revision="main",
        device="cpu",
        batch_size=10,
        max_tokens=512,
        reference_check=False,
    )


@pytest.mark.parametrize("part", [None, "shared", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"])
def test_a_model_with_other_weights_in_one_place_is_found_out(tiny_model, choice, tmp_path, part):
    """As when the embeddings are not tied again, which raises no error anywhere."""
    import torch

    references = {pair: tiny_model.probability(*pair.contexts, pair.claim) for pair in REFERENCES}
    name = f"t5.transformer.{part}.weight"
    changed = {} if part is None else {name: torch.roll(tiny_model.weights[name], 1, dims=0)}
    folder = tiny_model.save(tmp_path, **changed)
    refused = pytest.raises(JudgeError, match="of the 7 published reference pairs")
    with nullcontext() if part is None else refused:
        check_references(load(replace(choice, model=str(folder))), references)


class CountingNetwork:
    """Computes nothing, and notes how many prompts come together."""

    def __init__(self):
        self.sizes = []

    def probabilities(self, prompts):
        self.sizes.append(len(prompts))
        return [0.5] * len(prompts)


class LetterPrompt:
    def fit(self, pairs):
        return [FittedPair(tokens=tuple(map(ord, pair.claim))) for pair in pairs]


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([1024] * 10, [8, 2]),
        ([10_000, 10_000, 1], [1, 1, 1]),
        ([5000, 3192, 1, 8191], [2, 2]),
        ([1] * 11, [10, 1]),
    ],
)
def test_long_pairs_are_computed_with_fewer_others(lengths, sizes):
    network = CountingNetwork()
    pairs = [Pair(contexts=(), claim="x" * length) for length in lengths]
    found = HHEM(LetterPrompt(), network, batch_size=10).findings(pairs)

    assert (network.sizes, len(found)) == (sizes, len(pairs))


def test_a_model_that_computes_no_number_is_refused():
    network = CountingNetwork()
    network.probabilities = lambda prompts: [math.nan] * len(prompts)

    with pytest.raises(JudgeError, match="7 of the 7 published reference pairs"):
        check_references(HHEM(LetterPrompt(), network, batch_size=10))


def test_a_model_that_is_not_the_published_one_is_refused(choice):
    with pytest.raises(JudgeError, match="published reference pairs get another probability") as refused:
        load(replace(choice, reference_check=True))

    assert refused.value.error_type == "hhem_reference_mismatch"
