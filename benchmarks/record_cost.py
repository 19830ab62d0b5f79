"""What making the record of a request costs the worker, in processor time, with four passages of a kilobyte in the prompt.

    python benchmarks/record_cost.py [--rounds N] [FILE ...]

`natural` are passages of the given files, or of ragspan's own docs; `repeating` are the passages of `hot_path.py`, whose sentence
repeats. `one by one` is LlamaIndex with a prompt for each passage. Targets: at most 0.5 ms and 1 ms. It prints the median of the rounds, each of which makes the record of a fresh request.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from long_requests import KeepingSink, Request, chain, joined, query
from scenarios.llama_index_rag import passages

PASSAGES = 4
LENGTH = 1000
TARGETS = {"natural": 0.5, "repeating": 1.0}


def natural_passages(files: Sequence[Path]) -> list[str]:
    """Passages of a kilobyte from texts, each from another place."""
    text = " ".join(" ".join(file.read_text().split()) for file in files)
    step = len(text) // PASSAGES
    return [text[at * step : at * step + LENGTH] for at in range(PASSAGES)]


def milliseconds(request: Request, rounds: int) -> float:
    """The median processor time of `to_record`."""
    costs = []
    for _ in range(rounds):
        sink = KeepingSink()
        request(sink)
        began = time.thread_time()
        sink.captures[-1].to_record()
        costs.append((time.thread_time() - began) * 1000)
    return statistics.median(costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="texts to take natural passages from")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    files = options.files or sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
    texts = {"natural": natural_passages(files), "repeating": [node.get_content() for node in passages(PASSAGES)]}
    for name, own in texts.items():
        programs = {"LangChain": chain(own, joined), "LlamaIndex": query(own, mode="compact"), "one by one": query(own)}
        for program, request in programs.items():
            cost = milliseconds(request, options.rounds)
            print(f"{program:11} {name:10} {cost:6.3f} ms {'met' if cost <= TARGETS[name] else 'MISSED'}")


if __name__ == "__main__":
    main()
