"""How fast HHEM is on this machine, and what batches gain.

    python benchmarks/hhem_speed.py [--model FOLDER] [--device cpu] [--quick] [--json FILE]

Needs `pip install 'ragspan[hhem]'`. Without `--model` it is a network of the published sizes with random weights, which takes
as long as the published one. For each length of a pair in tokens and each size of a batch: pairs a second, and seconds of
processor time for a pair, as median (least … most) of rounds in which all take turns. The first round, which warms up, does
not count.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ragspan_hhem.model import WEIGHTS_FILE
from ragspan_hhem.network import Network
from ragspan_hhem.prompt import END, PAD

VOCABULARY, WIDTH, HEADS, FORWARD_WIDTH, LAYERS, BUCKETS = 32128, 768, 12, 2048, 12, 32
"""Of the published model; its heads together are as wide as its states."""
LENGTHS = (64, 300, 800)  # ten of the longest are what the verifier still computes as one batch
BATCH_SIZES = (1, 10)
PAIRS = 10
ROUNDS = 4
QUICK_ROUNDS = 2


def main() -> None:
    arguments = parsed()
    network, seconds = loaded(arguments.model, arguments.device)
    lengths = LENGTHS[:1] if arguments.quick else LENGTHS
    rows = measured(network, lengths, rounds=QUICK_ROUNDS if arguments.quick else ROUNDS)

    table = Table(title=f"HHEM on {arguments.device}, loaded in {seconds:.1f} s")
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*map(shown, row.values()))
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps({"load_seconds": seconds, "rows": rows}, indent=2))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, help="a folder with HHEM's model.safetensors")
    parser.add_argument("--device", default="cpu", help="as torch names it: cpu, cuda:0")
    parser.add_argument("--quick", action="store_true", help="the shortest pairs only, and once")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    return parser.parse_args()


def loaded(model: Path | None, device: str) -> tuple[Network, float]:
    """The network, and the seconds that loading took."""
    with tempfile.TemporaryDirectory() as folder:
        weights = (model or random_model(Path(folder))) / WEIGHTS_FILE
        began = time.perf_counter()
        return Network(weights, device=device), time.perf_counter() - began


def random_model(folder: Path) -> Path:
    import torch
    from safetensors.torch import save_file

    weights = {name: torch.randn(shape) / shape[-1] ** 0.5 for name, shape in published_shapes().items()}
    save_file(weights, folder / WEIGHTS_FILE)
    return folder


def published_shapes() -> dict[str, tuple[int, ...]]:
    encoder = "t5.transformer.encoder"
    shapes: dict[str, tuple[int, ...]] = {
        "t5.transformer.shared.weight": (VOCABULARY, WIDTH),
        "t5.classifier.weight": (2, WIDTH),
        "t5.classifier.bias": (2,),
        f"{encoder}.final_layer_norm.weight": (WIDTH,),
        f"{encoder}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (BUCKETS, HEADS),
    }
    in_block: dict[str, tuple[int, ...]] = {
        **{f"0.SelfAttention.{name}": (WIDTH, WIDTH) for name in "qkvo"},
        **{f"{part}.layer_norm": (WIDTH,) for part in (0, 1)},
        **{f"1.DenseReluDense.{name}": (FORWARD_WIDTH, WIDTH) for name in ("wi_0", "wi_1")},
        "1.DenseReluDense.wo": (WIDTH, FORWARD_WIDTH),
    }
    for layer in range(LAYERS):
        shapes |= {f"{encoder}.block.{layer}.layer.{name}.weight": shape for name, shape in in_block.items()}
    return shapes


def measured(network: Network, lengths: Sequence[int], *, rounds: int) -> list[dict[str, Any]]:
    cases = [(length, batch_size) for length in lengths for batch_size in BATCH_SIZES]
    times: dict[tuple[int, int], list[tuple[float, float]]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            times[case].append(time_taken(network, *case))
    return [
        {
            "tokens": length,
            "pairs in a batch": batch_size,
            "pairs a second": [PAIRS / wall for wall, _ in times[length, batch_size][1:]],
            "processor seconds a pair": [spent / PAIRS for _, spent in times[length, batch_size][1:]],
        }
        for length, batch_size in cases
    ]


def shown(value: int | list[float]) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{statistics.median(value):.2f} ({min(value):.2f} … {max(value):.2f})"


def time_taken(network: Network, length: int, batch_size: int) -> tuple[float, float]:
    """Seconds on the wall and of processors for `PAIRS` pairs."""
    prompts = [[PAD, *random.choices(range(3, VOCABULARY), k=length - 2), END] for _ in range(PAIRS)]
    began, spent = time.perf_counter(), time.process_time()
    for start in range(0, PAIRS, batch_size):
        network.probabilities(prompts[start : start + batch_size])
    return time.perf_counter() - began, time.process_time() - spent


if __name__ == "__main__":
    main()
