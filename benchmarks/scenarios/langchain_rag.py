"""A LangChain RAG chain: retrieve, format, prompt, answer; 18 events."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

from interleaved import CountingSink, Framework, Handlers, Scenario
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from ragspan_langchain import RagspanCallbackHandler

EVENTS = 18
TOKENS = 500


class NoOpHandler(BaseCallbackHandler):
    """Listens to everything and does nothing, inline like ours."""

    run_inline = True

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Without this method LangChain would write the messages out as one text for `on_llm_start`."""


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


def framework(loop: asyncio.AbstractEventLoop) -> Framework:
    sink = CountingSink()
    return Framework(
        name="LangChain",
        no_op=NoOpHandler,
        ragspan=[RagspanCallbackHandler(sink=sink)],
        sink=sink,
        scenarios=scenarios(loop),
    )


def scenarios(loop: asyncio.AbstractEventLoop) -> list[Scenario]:
    passages = [f"Passage {place}. " + "Beta settles card payments after midnight. " * 22 for place in range(10)]
    small = rag_chain(passages[:4], fixed_model())
    streaming = rag_chain(passages[:4], TokenModel())
    kilobytes = rag_chain(passages, fixed_model())
    megabytes = rag_chain([text * 1000 for text in passages], fixed_model())

    async def read(handlers: Handlers) -> None:
        async for _ in streaming.astream("When?", config={"callbacks": handlers}):
            pass

    return [
        Scenario(name="invoke", unit="event", units=EVENTS, target=8.0, turns=12, run=invoke(small)),
        Scenario(
            name="ainvoke",
            unit="event",
            units=EVENTS,
            turns=12,
            run=lambda handlers: loop.run_until_complete(small.ainvoke("When?", config={"callbacks": handlers})),
        ),
        Scenario(
            name="stream",
            unit="token",
            units=TOKENS,
            target=3.0,
            turns=4,
            run=lambda handlers: list(streaming.stream("When?", config={"callbacks": handlers})),
        ),
        Scenario(
            name="astream",
            unit="token",
            units=TOKENS,
            target=3.0,
            turns=3,
            run=lambda handlers: loop.run_until_complete(read(handlers)),
        ),
        Scenario(name="ten documents of 1 kB", unit="request", turns=8, run=invoke(kilobytes)),
        Scenario(name="ten documents of 1 MB", unit="request", turns=4, run=invoke(megabytes)),
    ]


def invoke(chain: Runnable[str, str]) -> Callable[[Handlers], object]:
    return lambda handlers: chain.invoke("When?", config={"callbacks": handlers})


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
