"""LlamaIndex engines over four passages of a kilobyte; a query has 14 spans.

Tokens are counted by splitting at blanks. The framework's own tokenizer would take half of the program's time and make
most of its noise, and no handler has to do with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from threading import Thread
from typing import Any, cast

from interleaved import CountingSink, Framework, Handlers, Scenario
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher

from ragspan_llama_index import RagspanCallbackHandler

SPANS = 14
TOKENS = 500
QUESTION = "When are card payments settled?"
ANSWER = "Beta settles them every night."


class NoOpSpanHandler(BaseSpanHandler[Any]):
    """Is told of every span and does nothing."""

    def span_enter(self, *args: Any, **kwargs: Any) -> None:
        pass

    def span_exit(self, *args: Any, **kwargs: Any) -> None:
        pass

    def span_drop(self, *args: Any, **kwargs: Any) -> None:
        pass

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        pass


class SpanCounter(NoOpSpanHandler):
    """Counts spans."""

    spans: int = 0

    def span_enter(self, *args: Any, **kwargs: Any) -> None:
        self.spans += 1


class FixedModel(CustomLLM):
    """Completes every prompt with `ANSWER`, and streams `TOKENS` tokens."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8192, model_name="fixed")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return (CompletionResponse(text="", delta="word ") for _ in range(TOKENS))


class BrokenModel(FixedModel):
    """Fails."""

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise ConnectionError("the model is down")


class FixedRetriever(BaseRetriever):
    """Finds the same nodes for every question."""

    def __init__(self, nodes: Sequence[TextNode]) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=0.5) for node in self.nodes]


class FixedSynthesizer(BaseSynthesizer):
    """Answers without a prompt, so that nodes of any size are cheap to the program itself."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        pass

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        return ANSWER

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        return ANSWER


class BestPassage(CustomQueryEngine):
    """Answers with the best passage itself."""

    retriever: BaseRetriever

    def custom_query(self, query_str: str) -> str:
        return self.retriever.retrieve(query_str)[0].get_content()


def framework(loop: asyncio.AbstractEventLoop) -> Framework:
    Settings.llm = FixedModel()
    Settings.embed_model = MockEmbedding(embed_dim=8)
    Settings.tokenizer = str.split
    sink = CountingSink()
    return Framework(
        name="LlamaIndex", no_op=NoOpSpanHandler, ragspan=ragspan_handlers(sink), sink=sink, scenarios=scenarios(loop)
    )


def ragspan_handlers(sink: CountingSink) -> Handlers:
    """The span handlers that ragspan attaches to the root dispatcher."""
    before = list(get_dispatcher().span_handlers)
    RagspanCallbackHandler(sink=sink)
    return [mine for mine in get_dispatcher().span_handlers if not any(mine is other for other in before)]


def with_handlers(program: Callable[[], object]) -> Callable[[Handlers], object]:
    """The program as a function of the span handlers that are attached to the root dispatcher."""
    root = get_dispatcher()

    def run(handlers: Handlers) -> object:
        root.span_handlers = handlers
        return program()

    return run


def scenarios(loop: asyncio.AbstractEventLoop) -> list[Scenario]:
    return [*answers(loop), *streams(loop), *sizes()]


def answers(loop: asyncio.AbstractEventLoop) -> list[Scenario]:
    """Requests that end when the call returns."""
    retriever = VectorStoreIndex(passages(4)).as_retriever(similarity_top_k=4)
    engine = RetrieverQueryEngine.from_args(retriever)
    broken = RetrieverQueryEngine.from_args(retriever, llm=BrokenModel())
    custom = BestPassage(retriever=retriever)
    chat = chat_engine(retriever)
    query = with_handlers(lambda: engine.query(QUESTION))

    def fail() -> None:
        with contextlib.suppress(ConnectionError):
            broken.query(QUESTION)

    return [
        Scenario(
            name="query", unit="query", target=60.0, turns=24, run=query, check=lambda: expect_spans(query, SPANS)
        ),
        Scenario(
            name="aquery",
            unit="query",
            target=60.0,
            turns=24,
            run=with_handlers(lambda: loop.run_until_complete(engine.aquery(QUESTION))),
        ),
        Scenario(name="query, the model fails", unit="query", turns=12, run=with_handlers(fail)),
        Scenario(name="custom engine", unit="query", turns=12, run=with_handlers(lambda: custom.query(QUESTION))),
        Scenario(name="chat", unit="turn", turns=12, run=with_handlers(lambda: chat.chat(QUESTION, chat_history=[]))),
    ]


def streams(loop: asyncio.AbstractEventLoop) -> list[Scenario]:
    """Requests that end with their last token."""
    retriever = VectorStoreIndex(passages(4)).as_retriever(similarity_top_k=4)
    engine = RetrieverQueryEngine.from_args(retriever, streaming=True)
    chat = chat_engine(retriever)

    def stream() -> None:
        exhaust(cast("StreamingResponse", engine.query(QUESTION)).response_gen)

    async def astream() -> None:
        response = cast("AsyncStreamingResponse", await engine.aquery(QUESTION))
        async for _ in response.async_response_gen():
            pass

    def stream_chat() -> None:
        response = chat.stream_chat(QUESTION, chat_history=[])
        # A reader that is faster than the model asks for the next token without a pause: that is not the handler's time.
        cast("Thread", response.write_response_to_history_thread).join()
        exhaust(response.response_gen)

    programs = {
        "streaming query": stream,
        "streaming aquery": lambda: loop.run_until_complete(astream()),
        "stream_chat": stream_chat,
    }
    return [
        Scenario(name=name, unit="token", units=TOKENS, target=3.0, turns=4, run=with_handlers(program))
        for name, program in programs.items()
    ]


def sizes() -> list[Scenario]:
    """The same request with passages of different sizes."""

    def query_over(nodes: Sequence[TextNode]) -> Callable[[Handlers], object]:
        engine = RetrieverQueryEngine(FixedRetriever(nodes), FixedSynthesizer())
        return with_handlers(lambda: engine.query(QUESTION))

    return [
        Scenario(name="ten nodes of 1 kB", unit="query", turns=12, run=query_over(passages(10))),
        Scenario(name="ten nodes of 1 MB", unit="query", turns=6, run=query_over(passages(10, times=1000))),
    ]


def chat_engine(retriever: BaseRetriever) -> ContextChatEngine:
    """With a memory that is a list: the default one, a database in memory, takes several times as long as a query."""
    return ContextChatEngine.from_defaults(retriever, memory=ChatMemoryBuffer.from_defaults(token_limit=8192))


def exhaust(tokens: Iterable[object]) -> None:
    """Read to the end."""
    for _ in tokens:
        pass


def expect_spans(program: Callable[[Handlers], object], spans: int) -> None:
    """Raise unless one run has so many spans."""
    counter = SpanCounter()
    program([counter])
    if counter.spans != spans:
        raise RuntimeError(f"the program has {counter.spans} spans here, not {spans}")


def passages(count: int, *, times: int = 1) -> list[TextNode]:
    """Of one kilobyte each, or so many times as much."""
    return [
        TextNode(
            id_=str(place),
            text=(f"Passage {place}. " + "Beta settles card payments after midnight. " * 22) * times,
            metadata={"page": place},
        )
        for place in range(count)
    ]
