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


def test_a_checkpoint_may_hold_the_embeddings_twice(tiny_model, make_network, tmp_path):
    embeddings = tiny_model.weights["t5.transformer.shared.weight"]
    folder = tiny_model.save(tmp_path, **{"t5.transformer.encoder.embed_tokens.weight": embeddings.clone()})

    assert make_network(folder).probabilities([a_prompt(9)]) == make_network().probabilities([a_prompt(9)])


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


def test_the_probability_is_that_of_transformers(tiny_model, make_network):
    """Whatever its release, with the embeddings where they belong: padding, buckets of distances, the order of it all."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers, which ragspan does not need, is not there")
    config = transformers.T5Config(
        vocab_size=len(tiny_model.weights["t5.transformer.shared.weight"]),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=3,
        feed_forward_proj="gated-gelu",
        num_labels=2,
    )
    weights = {name.removeprefix("t5."): weight for name, weight in tiny_model.weights.items()}
    weights["transformer.encoder.embed_tokens.weight"] = weights["transformer.shared.weight"]
    model = transformers.T5ForTokenClassification(config).eval()
    model.load_state_dict(weights)
    prompts = [a_prompt(length, seed=length) for length in (300, 7, 16, 129)]
    ids = [torch.tensor(prompt) for prompt in prompts]
    padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(prompt) for prompt in ids], batch_first=True)
    with torch.inference_mode():
        logits = model(input_ids=padded, attention_mask=mask).logits[:, 0]

    assert make_network().probabilities(prompts) == pytest.approx(torch.softmax(logits, -1)[:, 1].tolist(), abs=1e-5)
