"""What background costs an LLM judge: requests and tokens of the four default metrics, without background and with it.

    python benchmarks/background_tokens.py [--json FILE]

Ten kinds of programs, each with passages and background of the sizes that such programs have. A client in this process replies
at once: five claims, all supported. Tokens are counted as in `judge_cost.py`; of a completion, its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from judging.prompts_sent import Tokenizer, tokenizer
from rich.console import Console
from rich.table import Table

from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.llm import LLMJudge
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.records import Background, BackgroundKind, RagRecord
from ragspan.usage import Usage

CLAIMS = 5
PROGRAMS: Mapping[str, tuple[int, BackgroundKind, int]] = {
    "plain RAG, five passages": (5, "metadata", 0),
    "sources beside passages": (5, "metadata", 500),
    "FAQ index, answer in the metadata": (5, "metadata", 2_000),
    "RAG with a small tool": (3, "tool", 300),
    "RAG with memories and a date": (5, "other", 800),
    "RAG agent, second turn": (3, "history", 6_000),
    "RAG agent, fifth turn": (3, "history", 18_000),
    "agent of SQL": (0, "tool", 1_500),
    "agent of the web, five pages": (0, "tool", 49_000),
    "summary of a long conversation": (0, "history", 60_000),
}
"""Passages of a kilobyte, and the kind and the characters of background."""
_WORDS = [
    f"{one}{other}" for one in ("har", "sil", "ver", "lan", "mor", "tin") for other in ("bour", "card", "fee", "gate")
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    program: str
    background: int
    """Characters."""
    requests: int
    requests_with: int
    prompt: int
    """Tokens."""
    prompt_with: int


class Client:
    """Replies to each task as its form asks, and counts what it is sent."""

    def __init__(self, tokens: Tokenizer) -> None:
        self._tokens = tokens
        self.requests = 0
        self.prompt = 0

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        del schema, temperature
        self.requests += 1
        self.prompt += sum(self._tokens.count(message["content"]) for message in messages)
        return [Completion(text=reply_to(messages[-1]["content"]), usage=Usage(requests=1))] * n


def reply_to(prompt: str) -> str:
    numbers = range(1, CLAIMS + 1)
    contexts = int(prompt.partition("this case: ")[2].partition(" contexts")[0])
    why = {"reasoning": "Context 1 says so."}
    answers: dict[str, Any] = {
        "grounding": why | {"verdict": "grounded"},
        "completeness": why | {"value": 1},
        "claims": [f"Claim {number} of the response." for number in numbers],
        "claim_verdicts": [{"number": number, **why, "verdict": "supported"} for number in numbers],
        "context_verdicts": [{"number": 1 + index, **why, "verdict": "useful"} for index in range(contexts)],
    }
    form = prompt.rpartition('Form: {"answer": {"')[2].partition('"')[0]
    return json.dumps({"answer": {form: answers[form]}})


def text_of(characters: int, seed: str) -> str:
    words = random.Random(seed)
    text = ""
    while len(text) < characters:
        text += f"{' '.join(words.choices(_WORDS, k=12))} {words.randrange(9999)}. "
    return text[:characters]


def program(name: str) -> RagRecord:
    passages, kind, characters = PROGRAMS[name]
    return RagRecord(
        question="What does the silver card cost?",
        contexts=[text_of(1000, f"{name} {number}") for number in range(passages)],
        response=text_of(400, f"{name} response"),
        background=[Background(text=text_of(characters, name), kind=kind)] if characters else (),
    )


async def cost_of(record: RagRecord, tokens: Tokenizer) -> Client:
    client = Client(tokens)
    judge = LLMJudge(client, name="counting")
    kinds = (ContextAdherence, Completeness, ContextUtilization, Faithfulness)
    with judging(JudgingSession(record=record)):
        await asyncio.gather(*(kind(judge).score(record) for kind in kinds))
    return client


async def measured(tokens: Tokenizer) -> list[Figures]:
    found = []
    for name in PROGRAMS:
        record = program(name)
        bare, full = await cost_of(replace(record, background=()), tokens), await cost_of(record, tokens)
        found.append(
            Figures(
                program=name,
                background=sum(len(one.text) for one in record.background),
                requests=bare.requests,
                requests_with=full.requests,
                prompt=bare.prompt,
                prompt_with=full.prompt,
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    tokens = tokenizer()
    results = asyncio.run(measured(tokens))
    table = Table(title=f"The four default metrics on one answer; tokens by {tokens.name}")
    for heading in ("program", "background, characters", "requests", "with it", "prompt tokens", "with it"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for one in results:
        figures = (one.background, one.requests, one.requests_with, one.prompt, one.prompt_with)
        table.add_row(one.program, *(f"{figure:,}" for figure in figures))
    Console(width=110).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in results]), encoding="utf-8")


if __name__ == "__main__":
    main()
