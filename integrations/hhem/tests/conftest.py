"""A model like the published one in its files and its architecture, a thousand times smaller, with random weights."""

from __future__ import annotations

import json
import math
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragspan_hhem.model import Finding

PROMPT = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {}\n\nHypothesis: {}"
"""As the model's authors published it."""
SPECIAL = ["<pad>", "</s>", "<unk>"]
PIECES = ["▁", *string.printable.strip(), "▁the", "▁is", "▁Premise", "▁Hypothesis", "ing", "é"]
WIDTH, INNER, HEADS, FORWARD, LAYERS, BUCKETS = 32, 24, 3, 48, 2, 32


@pytest.fixture(scope="session")
def tokenizer():
    """As FLAN-T5's: special tokens anywhere, white space first, then pieces of words, and an end."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    from tokenizers import models, normalizers, pre_tokenizers, processors

    vocabulary = [(token, 0.0) for token in SPECIAL] + [(piece, -5.0 + len(piece)) for piece in PIECES]
    made = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=2, byte_fallback=False))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.post_processor = processors.TemplateProcessing(single=["$A", "</s>"], special_tokens=[("</s>", 1)])
    made.add_special_tokens(SPECIAL)
    return made


@dataclass(frozen=True)
class TinyModel:
    """The files of a model, and what it has to answer."""

    folder: Path
    weights: dict[str, Any]
    tokenizer: Any

    def probability(self, premise, claim):
        """By the published formula: the prompt as one text, and no padding."""
        return self.probability_of(self.tokenizer.encode(PROMPT.format(premise, claim)).ids)

    def probability_of(self, prompt):
        return supported_probability(self.weights, prompt)

    def save(self, folder, **changes):
        """The same files in another folder, with changed weights; those changed to None are left out."""
        return write_files(folder, {**self.weights, **changes}, self.tokenizer)


def write_files(folder, weights, tokenizer):
    from safetensors.torch import save_file

    kept = {name: weight.contiguous() for name, weight in weights.items() if weight is not None}
    save_file(kept, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "HHEMv2Config"}))
    return folder


@pytest.fixture(scope="session")
def tiny_model(tokenizer, tmp_path_factory):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)  # what is so small loses more by waiting for others
    weights = random_weights(vocabulary=len(SPECIAL) + len(PIECES))
    folder = write_files(tmp_path_factory.mktemp("hhem"), weights, tokenizer)
    return TinyModel(folder, weights, tokenizer)


def random_weights(vocabulary):
    """By the names that the published checkpoint has: the embeddings are in it once."""
    import torch

    shapes: dict[str, tuple[int, ...]] = {"shared": (vocabulary, WIDTH), "encoder.final_layer_norm": (WIDTH,)}
    for layer in range(LAYERS):
        block = f"encoder.block.{layer}.layer"
        shapes |= {f"{block}.0.SelfAttention.{name}": (INNER, WIDTH) for name in "qkv"}
        shapes |= {f"{block}.0.SelfAttention.o": (WIDTH, INNER)}
        shapes |= {f"{block}.1.DenseReluDense.{name}": (FORWARD, WIDTH) for name in ("wi_0", "wi_1")}
        shapes |= {f"{block}.1.DenseReluDense.wo": (WIDTH, FORWARD)}
        shapes |= {f"{block}.{part}.layer_norm": (WIDTH,) for part in (0, 1)}
    shapes["encoder.block.0.layer.0.SelfAttention.relative_attention_bias"] = (BUCKETS, HEADS)
    generator = torch.Generator().manual_seed(20)
    weights = {
        f"t5.transformer.{name}.weight": torch.randn(shape, generator=generator) / math.sqrt(shape[-1])
        for name, shape in shapes.items()
    }
    weights["t5.classifier.weight"] = torch.randn((2, WIDTH), generator=generator) / 4
    weights["t5.classifier.bias"] = torch.randn(2, generator=generator)
    return weights


def supported_probability(weights, prompt):
    """HHEM's formula in plain tensors, for one prompt: a T5 encoder, a linear head on its first token, and softmax."""
    import torch

    def named(name):
        return weights[f"t5.transformer.encoder.{name}.weight"]

    def normed(states, name):
        return states / torch.sqrt((states**2).mean(-1, keepdim=True) + 1e-6) * named(name)

    def by_head(states):
        return states.unflatten(-1, (HEADS, -1)).transpose(0, 1)

    states = weights["t5.transformer.shared.weight"][torch.tensor(prompt)]
    bias = named("block.0.layer.0.SelfAttention.relative_attention_bias")[buckets(len(prompt))].permute(2, 0, 1)
    for layer in range(LAYERS):
        attention = f"block.{layer}.layer.0.SelfAttention"
        read = normed(states, f"block.{layer}.layer.0.layer_norm")
        query, key, value = (by_head(read @ named(f"{attention}.{name}").T) for name in "qkv")
        seen = torch.softmax(query @ key.transpose(1, 2) + bias, dim=-1) @ value
        states = states + seen.transpose(0, 1).flatten(1) @ named(f"{attention}.o").T
        forward = f"block.{layer}.layer.1.DenseReluDense"
        read = normed(states, f"block.{layer}.layer.1.layer_norm")
        gate = torch.nn.functional.gelu(read @ named(f"{forward}.wi_0").T, approximate="tanh")
        states = states + (gate * (read @ named(f"{forward}.wi_1").T)) @ named(f"{forward}.wo").T
    first = normed(states, "final_layer_norm")[0]
    logits = weights["t5.classifier.weight"] @ first + weights["t5.classifier.bias"]
    return torch.softmax(logits, dim=0)[1].item()


def buckets(length):
    """The bucket of each distance between two tokens: one for each of the next seven, wider ones up to 128, on each side."""
    import torch

    places = torch.arange(length)
    distances = places[None, :] - places[:, None]
    far = 8 + (torch.log(distances.abs() / 8) / math.log(128 / 8) * 8).clamp(min=0).long()
    near = distances.abs() < 8
    return (distances > 0) * 16 + torch.where(near, distances.abs(), far.clamp(max=15))


class LetterClassifier:
    """Finds a claim as probable as its number of letters in hundredths, and keeps the batches."""

    def __init__(self):
        self.batches = []

    def findings(self, pairs):
        return self.compute(pairs)

    def compute(self, pairs):
        self.batches.append([pair.claim for pair in pairs])
        return [Finding(len(pair.claim) / 100) for pair in pairs]


@pytest.fixture
def letter_classifier():
    return LetterClassifier()
