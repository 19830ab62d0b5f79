"""The network in plain torch: a T5 encoder, and a two-way head over the first token of each prompt.

It needs the published weights only: transformers' releases 4 and 5 load them differently, and take longer to import. A gate keeps torch
from computing while the process forks or ends: its kernels hold locks while they compute. A fork copies a held lock, and the child waits
for it for ever. At the end of the process Python unwinds its daemon threads, and aborts if one is inside torch. Both wait for the current
step, five seconds at most.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ragspan.exceptions import JudgeError

if TYPE_CHECKING:
    from torch import Tensor

_SHARED = "t5.transformer.shared.weight"
_COPY_OF_SHARED = "t5.transformer.encoder.embed_tokens.weight"
_FINAL_NORM = "t5.transformer.encoder.final_layer_norm.weight"
_POSITIONS = "t5.transformer.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
_HEAD = "t5.classifier.weight"
_HEAD_BIAS = "t5.classifier.bias"
_BLOCK = "t5.transformer.encoder.block.{}.layer.{}.weight"
_IN_BLOCK = (
    *("0.layer_norm", *(f"0.SelfAttention.{name}" for name in "qkvo")),
    *("1.layer_norm", *(f"1.DenseReluDense.{name}" for name in ("wi_0", "wi_1", "wo"))),
)
_SUPPORTED = 1  # of the two ways
_EPSILON = 1e-6
_FARTHEST = 128  # distances in tokens above this count as equal


class Network:
    """Probabilities for prompts.

    Args:
        weights: a safetensors file. Their shapes give all sizes.
        device: as torch names it.

    Raises:
        JudgeError: these are not the weights of such a network (`hhem_unavailable`).
        Exception: torch cannot read or place them.
    """

    def __init__(self, weights: Path, *, device: str) -> None:
        import torch
        from safetensors.torch import load_file

        self._device = torch.device(device)
        loaded = load_file(weights)
        loaded.pop(_COPY_OF_SHARED, None)
        self._layers = sum(name.endswith("SelfAttention.q.weight") for name in loaded)
        blocks = {_BLOCK.format(layer, name) for layer in range(self._layers) for name in _IN_BLOCK}
        if not self._layers or {*loaded} != blocks | {_SHARED, _POSITIONS, _FINAL_NORM, _HEAD, _HEAD_BIAS}:
            raise JudgeError("hhem_unavailable", "the weights are not those of HHEM: a T5 encoder with a two-way head")
        self._weights = {name: weight.to(self._device, torch.float32) for name, weight in loaded.items()}
        self._buckets, self._heads = self._weights[_POSITIONS].shape

    def probabilities(self, prompts: Sequence[Sequence[int]]) -> list[float]:
        """For each prompt, the probability that its hypothesis is supported.

        They are computed as one batch without padding: all tokens go through the layers as one list, in which each prompt
        attends to itself.

        Raises:
            JudgeError: a result is not a number (`hhem_failed`).
        """
        import torch

        lengths = [*map(len, prompts)]
        with GATE, torch.inference_mode():
            bias = self._position_bias(max(lengths))
            states = self._weights[_SHARED][torch.tensor([*chain.from_iterable(prompts)], device=self._device)]
            for layer in range(self._layers):
                GATE.step()
                states = self._through(layer, states, lengths, bias)
            firsts = torch.stack([prompt[0] for prompt in self._normed(states, _FINAL_NORM).split(lengths)])
            logits = torch.nn.functional.linear(firsts, self._weights[_HEAD], self._weights[_HEAD_BIAS])
            probabilities: list[float] = torch.softmax(logits, dim=-1)[:, _SUPPORTED].tolist()
        if not all(map(math.isfinite, probabilities)):
            raise JudgeError("hhem_failed", "the classifier's result is not a number")
        return probabilities

    def _normed(self, states: Tensor, name: str) -> Tensor:
        """T5's norm: it scales and does not shift."""
        import torch

        return torch.nn.functional.rms_norm(states, states.shape[-1:], self._weights[name], _EPSILON)

    def _through(self, layer: int, states: Tensor, lengths: list[int], bias: Tensor) -> Tensor:
        """The states after a layer. T5 does not scale the products of queries and keys."""
        import torch
        from torch.nn import functional

        def weighted(rows: Tensor, name: str) -> Tensor:
            return functional.linear(rows, self._weights[_BLOCK.format(layer, name)])

        normed = self._normed(states, _BLOCK.format(layer, "0.layer_norm"))
        by_head = (
            weighted(normed, f"0.SelfAttention.{name}").unflatten(-1, (self._heads, -1)).transpose(0, 1)
            for name in "qkv"
        )
        by_prompt = zip(*(rows.unsqueeze(0).split(lengths, dim=2) for rows in by_head), strict=True)
        attended = [
            functional.scaled_dot_product_attention(
                query, key, value, attn_mask=bias[..., : query.shape[2], : query.shape[2]], scale=1.0
            )
            for query, key, value in by_prompt
        ]
        joined = torch.cat(attended, dim=2).squeeze(0).transpose(0, 1).flatten(1)
        states = states + weighted(joined, "0.SelfAttention.o")
        normed = self._normed(states, _BLOCK.format(layer, "1.layer_norm"))
        gate = functional.gelu(weighted(normed, "1.DenseReluDense.wi_0"), approximate="tanh")
        return states + weighted(gate * weighted(normed, "1.DenseReluDense.wi_1"), "1.DenseReluDense.wo")

    def _position_bias(self, length: int) -> Tensor:
        """What the distance of two tokens adds to their attention, by head, token and other token.

        T5 has buckets of distances: half for each direction; in each, half for single distances, half for ranges that grow.
        """
        import torch

        places = torch.arange(length, device=self._device)
        distances = places[None, :] - places[:, None]
        single = self._buckets // 4
        far = distances.abs()
        growth = torch.log(far.float().clamp(min=1) / single) / math.log(_FARTHEST / single)
        ranges = (single + (growth * (self._buckets // 2 - single)).long()).clamp(max=self._buckets // 2 - 1)
        buckets = (distances > 0) * (self._buckets // 2) + torch.where(far < single, far, ranges)
        return self._weights[_POSITIONS][buckets].permute(2, 0, 1).unsqueeze(0).contiguous()


# The gate

_PATIENCE = 5.0  # seconds: the longest steps take one


class Gate:
    """Lets one thread in at a time. While the gate is closed, the thread waits between its steps.

    Args:
        patience: seconds that `close` waits for a step to end.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self.begin_anew()

    def begin_anew(self) -> None:
        """Open, with no thread inside. For the child of a fork, where other threads do not exist."""
        self._changed = threading.Condition()
        self._is_taken = False
        self._closings = 0

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken and not self._closings)
            self._is_taken = True

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()

    def step(self) -> None:
        """Called by the thread inside, between two steps. It may wait here, and other threads may go first."""
        self.__exit__()
        self.__enter__()

    def close(self) -> bool:
        """Let no thread in or go on, and wait for the current step; whether it has ended in time."""
        with self._changed:
            self._closings += 1
            return self._changed.wait_for(lambda: not self._is_taken, self._patience)

    def open(self) -> None:
        """Undo one `close`."""
        with self._changed:
            self._closings -= 1
            self._changed.notify_all()


GATE = Gate()
"""Of this process."""

atexit.register(GATE.close)
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(before=GATE.close, after_in_parent=GATE.open, after_in_child=GATE.begin_anew)
