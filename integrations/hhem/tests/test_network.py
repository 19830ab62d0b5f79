"""The network against its formula in plain tensors."""

from __future__ import annotations

import random

import pytest

from ragspan.exceptions import JudgeError
from ragspan_hhem import network

VOCABULARY = range(3, 60)


@pytest.fixture
def make_network(tiny_model):
    def make(folder=None):
        return network.Network((folder or tiny_model.folder) / "model.safetensors", device="cpu")

    return make


def a_prompt(length, seed=0):
    chosen = random.Random(seed)
    return [0, *(chosen.choice(VOCABULARY) for _ in range(length - 2)), 1]


@pytest.mark.parametrize("lengths", [[2], [3], [200], [5, 150, 2, 40]])
def test_the_probability_is_that_of_the_formula_in_any_batch(tiny_model, make_network, lengths):
    prompts = [a_prompt(length, seed=length) for length in lengths]

    probabilities = make_network().probabilities(prompts)

    assert probabilities == pytest.approx([tiny_model.probability_of(prompt) for prompt in prompts], abs=1e-5)


ENCODER = "t5.transformer.encoder"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("t5.transformer.shared.weight", None),
        (f"{ENCODER}.final_layer_norm.weight", None),
        (f"{ENCODER}.block.1.layer.0.SelfAttention.k.weight", None),
        (f"{ENCODER}.block.0.layer.0.SelfAttention.q.bias", (24,)),
        ("t5.classifier.weight", None),
        ("t5.decoder.block.0.weight", (2, 2)),
    ],
)
def test_weights_of_another_kind_of_network_are_refused(tiny_model, make_network, tmp_path, name, shape):
    import torch

    folder = tiny_model.save(tmp_path, **{name: None if shape is None else torch.ones(shape)})

    with pytest.raises(JudgeError, match="not those of HHEM") as refused:
        make_network(folder)
    assert refused.value.error_type == "hhem_unavailable"


def test_a_result_that_is_no_number_is_an_error(tiny_model, make_network, tmp_path):
    bias = tiny_model.weights["t5.classifier.bias"]
    folder = tiny_model.save(tmp_path, **{"t5.classifier.bias": bias * float("nan")})

    with pytest.raises(JudgeError, match="not a number") as failed:
        make_network(folder).probabilities([a_prompt(5)])
    assert failed.value.error_type == "hhem_failed"
