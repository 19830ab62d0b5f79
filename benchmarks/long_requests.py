"""What it costs to make the record of a long request: processor time, how it grows, and how long others wait.

    python benchmarks/long_requests.py [--quick] [--json FILE] [--case WORDS]

A handler only takes notes while a request runs; the record is made in a worker thread of the same process, which looks
for the documents in the prompts. Here requests grow along one axis at a time. Each program really runs, with a model that
answers at once, and its record is made three times; the table shows the cheapest:

- processor time of the largest record (at most 0.25 s);
- the exponent with which it grew over the last two sizes (1 is linear; below 0.01 s it is noise and not judged);
- the longest time in which no other thread ran (at most 20 ms), seen by a thread that wants to run every half millisecond,
  in processor time of the process: what other programs take does not count, but a full machine may let that thread wait;
- what the record says: the number of its contexts, how many are truncated, or that they are not known.

A row that misses a target is marked. Other programs on the same cores make processor times longer: a row counts only on
a machine with a free processor. The garbage collector goes over what the record itself made and not over the frameworks'
own objects, which it would visit in any program.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from rich.console import Console
from rich.table import Table

from ragspan import RagRecord
from ragspan.records import Capture
from ragspan_langchain import RagspanCallbackHandler as LangChainHandler
from ragspan_llama_index import RagspanCallbackHandler as LlamaIndexHandler

MAX_SECONDS = 0.25
MAX_WAIT_SECONDS = 0.02
MAX_EXPONENT = 1.5
JUDGED_FROM_SECONDS = 0.01
REPEATS = 3
QUESTION = "When are card payments settled?"

_random = random.Random(0)
_VOCABULARY = ["".join(_random.choices("abcdefghijklmnop", k=_random.randint(2, 9))) for _ in range(5000)]

Request = Callable[["KeepingSink"], None]


class KeepingSink:
    def __init__(self) -> None:
        self.captures: list[Capture] = []

    def submit(self, capture: Capture) -> None:
        self.captures.append(capture)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    name: str
    unit: str
    sizes: Sequence[int]
    request: Callable[[int], Request]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    case: str
    unit: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    exponent: float | None
    longest_wait_seconds: float
    says: str
    misses: Sequence[str]


def words(count: int) -> str:
    return " ".join(_random.choices(_VOCABULARY, k=count))


# Programs


class _ToolModel(FakeMessagesListChatModel):
    def bind_tools(self, *_: Any, **__: Any) -> _ToolModel:
        return self


def agent(searches: int, write: Callable[[list[str]], str]) -> Request:
    """An agent that writes a sentence before each search, which finds ten documents of 400 words."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Search."""
        del query
        found = [Document(words(400)) for _ in range(10)]
        return write([document.page_content for document in found]), found

    calls = [{"name": "search", "args": {"query": str(number)}, "id": str(number)} for number in range(searches)]
    script = [AIMessage(f"Step: {words(12)}", tool_calls=[call]) for call in calls]

    def run(sink: KeepingSink) -> None:
        program: Any = create_agent(_ToolModel(responses=[*script, AIMessage(words(50))]), [search])
        config = {"callbacks": [LangChainHandler(sink=sink)], "recursion_limit": 10_000}
        program.invoke({"messages": [("user", QUESTION)]}, config)

    return run


class _Documents(BaseRetriever):
    texts: list[str]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(text) for text in self.texts]


def chain(texts: Sequence[str], write: Callable[[list[str]], str], answer: str = "At night.") -> Request:
    """A search, a prompt and a model."""
    model = FakeListChatModel(responses=[answer])

    def run(sink: KeepingSink) -> None:
        find = _Documents(texts=list(texts))

        def prompt(found: list[Document]) -> str:
            return f"{write([one.page_content for one in found])}\n\n{QUESTION}"

        (find | RunnableLambda(prompt) | model).invoke(QUESTION, {"callbacks": [LangChainHandler(sink=sink)]})

    return run


class _Nodes(NodeRetriever):
    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in self._texts]


class _PartsModel(CustomLLM):
    """Says something else each time."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        del prompt, formatted
        return CompletionResponse(text=words(30))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


def query(
    texts: Sequence[str], model: Callable[[], Any] = lambda: MockLLM(max_tokens=50), mode: str = "accumulate"
) -> Request:
    """A query engine of LlamaIndex that asks its model about each text, or in the mode `compact`, its default, about all at once."""

    def run(sink: KeepingSink) -> None:
        handler = LlamaIndexHandler(sink=sink)
        try:
            synthesizer = get_response_synthesizer(llm=model(), response_mode=mode)  # type: ignore[arg-type]
            RetrieverQueryEngine(_Nodes(texts), response_synthesizer=synthesizer).query(QUESTION)
        finally:
            handler.detach()

    return run


def joined(texts: list[str]) -> str:
    return "\n\n".join(texts)


def reversed_(texts: list[str]) -> str:
    return "\n\n".join(reversed(texts))


def trimmed(texts: list[str]) -> str:
    return "\n\n".join(f"{text[:500]}..." for text in texts)


def facts(count: int) -> list[str]:
    return [f"Fact {number}: assembly {number * 7} has part {number * 3}." for number in range(count)]


def repeating(count: int) -> Request:
    return chain([f"{'a ' * 500}b{number}" for number in range(count)], lambda _: "a " * 500_000)


LONG = (10, 20, 40, 80)
MANY = (1250, 2500, 5000, 10_000)
MEGA = (500_000, 1_000_000, 2_000_000, 4_000_000)
CASES = (
    Case(name="agent", unit="searches", sizes=LONG, request=lambda size: agent(size, joined)),
    Case(name="agent, other order", unit="searches", sizes=LONG, request=lambda size: agent(size, reversed_)),
    Case(name="agent, trimmed", unit="searches", sizes=LONG, request=lambda size: agent(size, trimmed)),
    Case(name="contexts", unit="contexts", sizes=MANY, request=lambda size: chain(facts(size), joined)),
    Case(name="contexts, other order", unit="contexts", sizes=MANY, request=lambda size: chain(facts(size), reversed_)),
    Case(name="texts that repeat themselves", unit="texts", sizes=(250, 500, 1000, 2000), request=repeating),
    Case(
        name="combining marks",
        unit="characters",
        sizes=MEGA,
        request=lambda size: chain(["e" + "\u0301\u0316" * (size // 2), *facts(1)], trimmed),
    ),
    Case(
        name="number of a character",
        unit="digits",
        sizes=(5000, 50_000, 500_000),
        request=lambda size: chain([f"see &#{'9' * size}; there", *facts(1)], trimmed),
    ),
    Case(
        name="one word",
        unit="characters",
        sizes=(2_500_000, 5_000_000, 10_000_000),
        request=lambda size: chain(["x" * size, *facts(1)], reversed_),
    ),
    Case(
        name="answer",
        unit="sentences",
        sizes=(25_000, 50_000, 100_000),
        request=lambda size: chain(facts(10), joined, answer=". ".join(words(8) for _ in range(size))),
    ),
    Case(
        name="LlamaIndex, contexts",
        unit="contexts",
        sizes=(100, 200, 400, 800),
        request=lambda size: query([words(100) for _ in range(size)]),
    ),
    Case(
        name="LlamaIndex, partial answers",
        unit="contexts",
        sizes=(100, 200, 400, 800),
        request=lambda size: query([words(100) for _ in range(size)], _PartsModel),
    ),
)


# Measuring


def longest_wait_beside(work: Callable[[], object]) -> float:
    """The longest time in which another thread that wanted to run did not."""
    done = threading.Event()
    longest = 0.0

    def tick() -> None:
        nonlocal longest
        last = time.process_time()
        while not done.wait(0.0005):
            now = time.process_time()
            longest = max(longest, now - last)
            last = now

    watcher = threading.Thread(target=tick)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return longest


def cost_of(capture: Capture) -> tuple[float, float, RagRecord | None]:
    costs, waits = [], []
    record = None
    for _ in range(REPEATS):
        gc.collect()
        gc.freeze()
        began = time.thread_time()
        record = capture.to_record()
        costs.append(time.thread_time() - began)
        waits.append(longest_wait_beside(capture.to_record))
        gc.unfreeze()
    return min(costs), min(waits), record


def measured(case: Case, sizes: Sequence[int]) -> Row:
    seconds: list[float] = []
    wait, record = 0.0, None
    for size in sizes:
        sink = KeepingSink()
        case.request(size)(sink)
        cost, wait, record = cost_of(sink.captures[-1])
        seconds.append(cost)
    exponent = None
    if len(sizes) > 1 and seconds[-2] >= JUDGED_FROM_SECONDS:
        exponent = math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])
    misses = []
    if seconds[-1] > MAX_SECONDS:
        misses.append(f"takes more than {MAX_SECONDS:g} s")
    if exponent is not None and exponent > MAX_EXPONENT:
        misses.append("grows faster than its size")
    if wait > MAX_WAIT_SECONDS:
        misses.append(f"others wait more than {MAX_WAIT_SECONDS * 1000:g} ms")
    return Row(
        case=case.name,
        unit=case.unit,
        sizes=sizes,
        seconds=seconds,
        exponent=exponent,
        longest_wait_seconds=wait,
        says=_what_is_said(record),
        misses=misses,
    )


def _what_is_said(record: RagRecord | None) -> str:
    if record is None:
        return "no record"
    if record.contexts is None:
        return "contexts not known"
    truncated = sum(context.truncated for context in record.contexts)
    return f"{len(record.contexts)} contexts" + (f", {truncated} truncated" if truncated else "")


def show(rows: Sequence[Row]) -> None:
    table = Table(title="Making the record of a long request")
    for heading in (
        "request",
        "sizes",
        "processor time, s",
        "exponent",
        "longest wait, ms",
        "the record has",
        "target",
    ):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row.case,
            f"{' '.join(f'{size:,}' for size in row.sizes)} {row.unit}",
            " ".join(f"{seconds:.3f}" for seconds in row.seconds),
            "" if row.exponent is None else f"{row.exponent:.2f}",
            f"{row.longest_wait_seconds * 1000:.1f}",
            row.says,
            f"[bold red]MISSED: {'; '.join(row.misses)}[/]" if row.misses else "met",
        )
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to make the record of a long request.")
    parser.add_argument("--quick", action="store_true", help="the smallest two sizes only: whether it runs")
    parser.add_argument("--case", metavar="WORDS", default="", help="requests with this in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.001)
    cases = [case for case in CASES if arguments.case in case.name]
    rows = [measured(case, case.sizes[:2] if arguments.quick else case.sizes) for case in cases]
    show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
