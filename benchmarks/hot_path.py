"""What a handler costs the request: processor time above a no-op handler, in one interleaved run.

    python benchmarks/hot_path.py [--quick] [--json FILE]

A LangChain RAG chain (retrieve, format, prompt, answer: 18 events) runs with no handler, with a handler that does
nothing, with the same once more (the noise of the measurement), and with ragspan's, whose sink throws captures away.
Every round takes the four in another order and yields one difference per pair; the table shows their medians and
quartiles. Processor time of the whole process is counted, not wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from rich.console import Console
from rich.table import Table

from ragspan.records import Capture
from ragspan_langchain import RagspanCallbackHandler

EVENTS = 18
TOKENS = 500


class DiscardingSink:
    """Throws captures away."""

    def submit(self, capture: Capture) -> None:
        pass


class NoOpHandler(BaseCallbackHandler):
    """Listens to everything and does nothing, inline like ours."""

    run_inline = True


class FixedRetriever(BaseRetriever):
    """Finds the same documents for every question."""

    texts: list[str]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=text, metadata={"page": page}) for page, text in enumerate(self.texts)]


class TokenModel(GenericFakeChatModel):
    """Streams `TOKENS` tokens."""

    messages: Any = iter(())

    def _stream(self, *args: Any, run_manager: Any = None, **kwargs: Any) -> Any:
        for place in range(TOKENS):
            last: Literal["last"] | None = "last" if place == TOKENS - 1 else None
            chunk = ChatGenerationChunk(message=AIMessageChunk(content="word ", chunk_position=last))
            if run_manager is not None:
                run_manager.on_llm_new_token("word ", chunk=chunk)
            yield chunk

    async def _astream(self, *args: Any, run_manager: Any = None, **kwargs: Any) -> Any:
        for place in range(TOKENS):
            last: Literal["last"] | None = "last" if place == TOKENS - 1 else None
            chunk = ChatGenerationChunk(message=AIMessageChunk(content="word ", chunk_position=last))
            if run_manager is not None:
                await run_manager.on_llm_new_token("word ", chunk=chunk)
            yield chunk


def rag_chain(texts: Sequence[str], model: Runnable[Any, Any]) -> Runnable[str, str]:
    source = FixedRetriever(texts=list(texts)) | (
        lambda found: "\n\n".join(document.page_content for document in found)
    )
    prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
    chain: Runnable[str, str] = (
        {"context": source, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    )
    return chain


def fixed_model() -> Runnable[Any, Any]:
    return GenericFakeChatModel(messages=itertools.repeat(AIMessage("Beta settles them every night.")))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    unit: str
    units: int
    """How many of the unit one run has."""
    target: float | None
    """Microseconds per unit above the no-op handler."""
    run: Callable[[list[Any]], None]
    """Runs the program once with these handlers."""


@dataclass(frozen=True, kw_only=True)
class Result:
    scenario: str
    unit: str
    target_us: float | None
    ragspan_us: float
    """Median of ragspan above the no-op handler, per unit."""
    ragspan_quartiles_us: tuple[float, float]
    noise_us: float
    """Median of the no-op handler above itself."""
    noise_quartiles_us: tuple[float, float]
    bare_us: float
    """Median of the program without any handler, per unit."""
    rounds: int


def scenarios() -> list[Scenario]:
    passages = [f"Passage {place}. " + "Beta settles card payments after midnight. " * 22 for place in range(10)]
    small = rag_chain(passages[:4], fixed_model())
    streaming = rag_chain(passages[:4], TokenModel())
    kilobytes = rag_chain(passages, fixed_model())
    megabytes = rag_chain([text * 1000 for text in passages], fixed_model())

    async def read(handlers: list[Any]) -> None:
        async for _ in streaming.astream("When?", config={"callbacks": handlers}):
            pass

    def invoke(chain: Runnable[str, str]) -> Callable[[list[Any]], None]:
        return lambda handlers: void(chain.invoke("When?", config={"callbacks": handlers}))

    return [
        Scenario(name="invoke", unit="event", units=EVENTS, target=8.0, run=invoke(small)),
        Scenario(
            name="ainvoke",
            unit="event",
            units=EVENTS,
            target=None,
            run=lambda handlers: void(asyncio.run(small.ainvoke("When?", config={"callbacks": handlers}))),
        ),
        Scenario(
            name="stream",
            unit="token",
            units=TOKENS,
            target=3.0,
            run=lambda handlers: void(list(streaming.stream("When?", config={"callbacks": handlers}))),
        ),
        Scenario(
            name="astream", unit="token", units=TOKENS, target=3.0, run=lambda handlers: asyncio.run(read(handlers))
        ),
        Scenario(name="ten documents of 1 kB", unit="request", units=1, target=None, run=invoke(kilobytes)),
        Scenario(name="ten documents of 1 MB", unit="request", units=1, target=None, run=invoke(megabytes)),
    ]


def void(_: object) -> None:
    """For lambdas that are called for what they do."""


def measure(scenario: Scenario, *, rounds: int, repeats: int) -> Result:
    handlers: dict[str, list[Any]] = {
        "bare": [],
        "no-op": [NoOpHandler()],
        "no-op again": [NoOpHandler()],
        "ragspan": [RagspanCallbackHandler(sink=DiscardingSink())],
    }
    for chosen in handlers.values():
        scenario.run(chosen)
    times: dict[str, list[float]] = {name: [] for name in handlers}
    for order in itertools.islice(itertools.cycle(itertools.permutations(handlers)), rounds):
        for name in order:
            gc.collect()
            started = time.process_time()
            for _ in range(repeats):
                scenario.run(handlers[name])
            times[name].append((time.process_time() - started) / repeats / scenario.units * 1e6)
    ours = [mine - theirs for mine, theirs in zip(times["ragspan"], times["no-op"], strict=True)]
    noise = [again - once for again, once in zip(times["no-op again"], times["no-op"], strict=True)]
    return Result(
        scenario=scenario.name,
        unit=scenario.unit,
        target_us=scenario.target,
        ragspan_us=statistics.median(ours),
        ragspan_quartiles_us=quartiles(ours),
        noise_us=statistics.median(noise),
        noise_quartiles_us=quartiles(noise),
        bare_us=statistics.median(times["bare"]),
        rounds=rounds,
    )


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    first, _, third = statistics.quantiles(values, n=4)
    return first, third


def show(results: Sequence[Result]) -> None:
    table = Table(title="Processor time above a no-op handler, microseconds: median (quartiles)")
    for heading in ("scenario", "per", "program alone", "no-op against itself", "ragspan", "target"):
        table.add_column(heading, justify="left" if heading in {"scenario", "per"} else "right")
    for result in results:
        table.add_row(
            result.scenario,
            result.unit,
            f"{result.bare_us:.1f}",
            f"{result.noise_us:+.2f} ({result.noise_quartiles_us[0]:+.2f} … {result.noise_quartiles_us[1]:+.2f})",
            f"{result.ragspan_us:.2f} ({result.ragspan_quartiles_us[0]:.2f} … {result.ragspan_quartiles_us[1]:.2f})",
            "" if result.target_us is None else f"{result.target_us:g}",
        )
    Console(width=None if sys.stdout.isatty() else 130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the handler costs the request.")
    parser.add_argument("--quick", action="store_true", help="a few rounds only: whether it runs, not what it costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    rounds = 6 if arguments.quick else 48
    results = []
    for scenario in scenarios():
        repeats = 1 if scenario.unit == "token" or "MB" in scenario.name else 4
        results.append(measure(scenario, rounds=rounds, repeats=repeats if arguments.quick else repeats * 4))
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
