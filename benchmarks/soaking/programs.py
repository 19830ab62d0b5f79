"""What the clients of a soak run: small programs, each of which is so many answers to be captured."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.outputs import ChatResult
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.query_engine import RetrieverQueryEngine
from scenarios import langchain_rag, llama_index_rag
from serving.application import DistantModel
from serving.passages import passages, question

import ragspan
from ragspan.records import RecordSink
from ragspan_langchain import RagspanCallbackHandler

BURST = 400
BULK = 300
"""Kilobytes of a passage that is far too long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """One program: synchronous or a coroutine."""

    name: str
    weight: int
    run: Callable[[int], object]
    """Given a number, unlike that of any other run."""
    answers: int = 1


class BrokenModel(BaseChatModel):
    """Cannot be reached."""

    @property
    def _llm_type(self) -> str:
        return "broken"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise ConnectionError("the model is down")


def synchronous_programs(sink: RecordSink, handler: RagspanCallbackHandler) -> list[Program]:
    return [
        *_chains(handler),
        *_engines(),
        Program(name="capture", weight=6, run=lambda number: _capture(sink, number, _CONTEXTS)),
        Program(name="capture of a long passage", weight=1, run=lambda number: _capture(sink, number, [_LONG])),
        Program(name="capture that fails", weight=2, run=lambda number: _failing_capture(sink, number)),
    ]


def asynchronous_programs(handler: RagspanCallbackHandler) -> list[Program]:
    """Their `run` returns an awaitable."""
    return [*_asynchronous_chains(handler), *_asynchronous_engines()]


def burst(sink: RecordSink) -> Program:
    """More answers at once than the queue can hold."""

    def run(number: int) -> None:
        for place in range(BURST):
            _capture(sink, number * BURST + place, _CONTEXTS)

    return Program(name="burst", weight=0, run=run, answers=BURST)


_CONTEXTS = passages(4)
_LONG = "".join(passages(BULK))
_RESPONSE = " ".join(passage.partition(". ")[0] + "." for passage in _CONTEXTS)


def _capture(sink: RecordSink, number: int, contexts: Sequence[str]) -> None:
    with ragspan.capture(question(number), sink=sink) as answer:
        answer.contexts = contexts
        answer.response = _RESPONSE


def _failing_capture(sink: RecordSink, number: int) -> None:
    with contextlib.suppress(ConnectionError), ragspan.capture(question(number), sink=sink) as answer:
        answer.contexts = _CONTEXTS
        raise ConnectionError("the model is down")


def _chains(handler: RagspanCallbackHandler) -> Iterator[Program]:
    config: Any = {"callbacks": [handler]}
    quick = langchain_rag.rag_chain(passages(10), langchain_rag.fixed_model())
    streaming = langchain_rag.rag_chain(passages(4), langchain_rag.TokenModel())
    broken = langchain_rag.rag_chain(passages(4), BrokenModel())

    def fail(number: int) -> None:
        with contextlib.suppress(ConnectionError):
            broken.invoke(question(number), config=config)

    def abandon(number: int) -> None:
        tokens = cast("Any", streaming.stream(question(number), config=config))
        next(tokens)
        if number % 2:  # else it is closed by letting go of it
            tokens.close()

    yield Program(name="invoke", weight=6, run=lambda number: quick.invoke(question(number), config=config))
    yield Program(name="stream", weight=2, run=lambda number: list(streaming.stream(question(number), config=config)))
    yield Program(name="stream, abandoned", weight=3, run=abandon)
    yield Program(name="chain that fails", weight=3, run=fail)


def _asynchronous_chains(handler: RagspanCallbackHandler) -> Iterator[Program]:
    config: Any = {"callbacks": [handler]}
    distant = langchain_rag.rag_chain(passages(10), DistantModel())
    streaming = langchain_rag.rag_chain(passages(4), langchain_rag.TokenModel())

    async def read(number: int) -> None:
        async for _ in streaming.astream(question(number), config=config):
            pass

    async def abandon(number: int) -> None:
        tokens = cast("Any", streaming.astream(question(number), config=config))
        await tokens.__anext__()
        if number % 2:  # else the event loop closes it when it is let go of
            await tokens.aclose()

    async def cancel(number: int) -> None:
        task = asyncio.ensure_future(distant.ainvoke(question(number), config=config))
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    yield Program(name="ainvoke", weight=6, run=lambda number: distant.ainvoke(question(number), config=config))
    yield Program(name="astream", weight=2, run=read)
    yield Program(name="astream, abandoned", weight=3, run=abandon)
    yield Program(name="ainvoke, cancelled", weight=3, run=cancel)


def _engines() -> Iterator[Program]:
    retriever = _retriever()
    engine = RetrieverQueryEngine.from_args(retriever)
    streaming = RetrieverQueryEngine.from_args(retriever, streaming=True)
    broken = RetrieverQueryEngine.from_args(retriever, llm=llama_index_rag.BrokenModel())

    def read(number: int) -> None:
        llama_index_rag.exhaust(cast("StreamingResponse", streaming.query(question(number))).response_gen)

    def abandon(number: int) -> None:
        tokens = cast("StreamingResponse", streaming.query(question(number))).response_gen
        next(tokens)
        tokens.close()

    def fail(number: int) -> None:
        with contextlib.suppress(ConnectionError):
            broken.query(question(number))

    yield Program(name="query", weight=4, run=lambda number: engine.query(question(number)))
    yield Program(name="streaming query", weight=2, run=read)
    yield Program(name="streaming query, abandoned", weight=2, run=abandon)
    yield Program(name="query that fails", weight=2, run=fail)


def _asynchronous_engines() -> Iterator[Program]:
    retriever = _retriever()
    engine = RetrieverQueryEngine.from_args(retriever)
    streaming = RetrieverQueryEngine.from_args(retriever, streaming=True)

    async def tokens_of(number: int) -> Any:
        return cast("AsyncStreamingResponse", await streaming.aquery(question(number))).async_response_gen()

    async def read(number: int) -> None:
        async for _ in await tokens_of(number):
            pass

    async def abandon(number: int) -> None:
        tokens = await tokens_of(number)
        await tokens.__anext__()
        await tokens.aclose()

    def ask(number: int) -> Awaitable[object]:
        return engine.aquery(question(number))

    yield Program(name="aquery", weight=4, run=ask)
    yield Program(name="streaming aquery", weight=2, run=read)
    yield Program(name="streaming aquery, abandoned", weight=2, run=abandon)


def _retriever() -> Any:
    Settings.llm = llama_index_rag.FixedModel()
    Settings.embed_model = MockEmbedding(embed_dim=8)
    Settings.tokenizer = str.split
    return VectorStoreIndex(llama_index_rag.passages(4)).as_retriever(similarity_top_k=4)
