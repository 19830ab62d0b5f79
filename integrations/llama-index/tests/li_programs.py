"""Passages, retrievers, indexes and engines that the tests are built from."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from captures import Answered, Captures
from llama_index.core import Settings, VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool
from packaging.version import Version

QUESTION = "How many strings does the cello have?"
ANSWER = "It has four of them."

CORE = Version(importlib.metadata.version("llama-index-core"))

token_by_token = pytest.mark.skipif(
    Version("0.14.22") <= CORE <= Version("0.14.24"),
    reason="llama-index-core 0.14.22 to 0.14.24 read the model's stream to its end before they hand over a compact or "
    "refined answer, which then comes in one piece: it cannot be left or break midway",
)


tools_know_their_run = pytest.mark.skipif(
    Version("0.14.22") > CORE,
    reason="before llama-index-core 0.14.22 an agent runs synchronous functions in threads without its context, so that "
    "nothing tells which run they belong to",
)

PASSAGES = {
    "cello": "The cello has four strings and is played sitting down.",
    "harp": "The harp has many strings, forty-seven in all, and seven pedals.",
    "drum": "The kettle drum is tuned by a pedal.",
    "oboe": "An oboe is blown through a double reed of cane.",
    "flute": "A flute splits the breath on an edge.",
}


def seen(name: str) -> str:
    """A passage as it stands in the prompt: LlamaIndex puts a node's metadata before its text."""
    return f"book: instruments\n\n{PASSAGES[name]}"


CELLO, HARP, DRUM, OBOE, FLUTE = map(seen, PASSAGES)


# Nodes


def node(name: str) -> TextNode:
    """A fresh node of a passage; its id is the name."""
    return TextNode(
        id_=name, text=PASSAGES[name], metadata={"book": "instruments"}, excluded_embed_metadata_keys=["book"]
    )


def found(*names: str) -> list[NodeWithScore]:
    """These passages as a retriever returns them, the best first."""
    return [NodeWithScore(node=node(name), score=1 - place / 10) for place, name in enumerate(names)]


# Retrievers


class FixedRetriever(BaseRetriever):
    """Finds the same, whatever the query; an exception is raised."""

    def __init__(self, result: list[NodeWithScore] | Exception) -> None:
        self.result = result
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class TopicRetriever(BaseRetriever):
    """Finds one passage for each instrument that the query names, in the order of the query."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return found(*(word for word in re.findall(r"[a-z]+", query_bundle.query_str.lower()) if word in PASSAGES))


class HangingRetriever(BaseRetriever):
    """Never answers an asynchronous call; says so by calling `waiting`."""

    def __init__(self, waiting: Any) -> None:
        self.waiting = waiting
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return []

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.waiting()
        await asyncio.Event().wait()
        return []


def retriever(*names: str) -> BaseRetriever:
    """A retriever that finds these passages, by default two."""
    return FixedRetriever(found(*(names or ("cello", "harp"))))


# Indexes and engines


def index(nodes: Iterable[TextNode] | None = None) -> VectorStoreIndex:
    """An index over these nodes, by default the five passages."""
    return VectorStoreIndex([node(name) for name in PASSAGES] if nodes is None else list(nodes))


def engine(*names: str, **options: Any) -> BaseQueryEngine:
    """An engine that finds these passages, by default two; the options are those of the response synthesizer."""
    return RetrieverQueryEngine(retriever(*names), get_response_synthesizer(**options))


def engine_over(source: BaseRetriever, *postprocessors: Any, **options: Any) -> BaseQueryEngine:
    """An engine with this retriever and these postprocessors."""
    return RetrieverQueryEngine(source, get_response_synthesizer(**options), list(postprocessors))


def topic_engine(**options: Any) -> BaseQueryEngine:
    """An engine that finds one passage for each instrument that the question names."""
    return engine_over(TopicRetriever(), **options)


def engine_tool(name: str, *names: str, **options: Any) -> QueryEngineTool:
    """A tool that asks an engine; without passages the engine finds what the question names."""
    asked = engine(*names, **options) if names else topic_engine(**options)
    return QueryEngineTool.from_defaults(asked, name=name, description=f"Knows about {name}.")


def ask_model(prompt: str) -> str:
    """One call of the model, as a program makes it by itself."""
    return Settings.llm.complete(prompt).text


# Programs as tests


class ByHand(CustomQueryEngine):
    """Answers with what a function of the question returns."""

    answer: Any

    def custom_query(self, query_str: str) -> Any:
        return self.answer(query_str)


def by_hand(answer: Callable[[str], Any]) -> BaseQueryEngine:
    return ByHand(answer=answer)


def answers(expected: Answered, *, said: Sequence[Any] = ()) -> Any:
    """Makes a test of a function of the question, or of an asynchronous one of a workflow's start event.

    It runs in an engine or a workflow, and this answer is captured. `said` are the model's lines.
    """

    def test_of(program: Callable[[Any], Any]) -> Any:
        def test(captured: Captures) -> None:
            if said:
                Settings.llm.says(*said)
            if inspect.iscoroutinefunction(program):
                asyncio.run(_run(program))
            else:
                by_hand(program).query(QUESTION)

            assert captured.answers() == [expected]

        return test

    return test_of


async def _run(program: Callable[[Any], Any]) -> None:
    from li_workflows import one_step

    await one_step(program).run(query=QUESTION)


# Ways to ask

WAYS = ["query", "aquery", "streamed query", "streamed aquery"]
each_way = pytest.mark.parametrize("way", WAYS)


def answer_of(make: Callable[..., Any], question: Any, way: str) -> str:
    """What a user gets of the engine that `make` builds with these options of a synthesizer, in one of the ways."""
    options = {"streaming": True} if "streamed" in way else {}
    return asyncio.run(_answer_of(make(**options), question, way.rsplit(maxsplit=1)[-1]))


async def _answer_of(asked: Any, question: Any, method: str) -> str:
    response = getattr(asked, method)(question)
    response = await response if method.startswith("a") else response
    stream = getattr(response, "response_gen", None)
    if stream is None:
        return str(response)
    return await drained(stream) if hasattr(stream, "__anext__") else "".join(stream)


# Reading streams


async def drained(stream: Any) -> str:
    """All that an asynchronous stream gives."""
    return "".join([token async for token in stream])


def ids(passages: Sequence[Any]) -> list[str | None]:
    return [passage.id for passage in passages]
