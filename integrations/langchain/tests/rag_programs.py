"""Documents, retrievers, models and chains that the tests are built from; they need no network and no key."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

QUESTION = "How long is the warranty on the pump?"
ANSWER = "It runs for three years."

PUMP = "The pump carries a warranty of three years from the date of purchase."
FILTER = "Filters are rinsed by hand once a month and dried in the shade."
MOTOR = "The motor draws four hundred watts at full load."
HOSE = "Spare hoses are ordered through the service desk in Lyon."
CASING = "The casing is cast from recycled aluminium and needs no paint."

TOPICS = {"pump": PUMP, "filter": FILTER, "motor": MOTOR, "hose": HOSE, "casing": CASING}

# Documents and retrievers


def documents(*texts: str) -> list[Document]:
    return [Document(page_content=text, id=f"doc-{i}", metadata={"page": i}) for i, text in enumerate(texts)]


def texts_of(found: Iterable[Document]) -> list[str]:
    return [document.page_content for document in found]


def join_texts(found: Iterable[Document]) -> str:
    return "\n\n".join(texts_of(found))


def look_up(query: str) -> list[Document]:
    """Searches a store directly, which no callback reports: one document for each topic that the query names."""
    return documents(*(TOPICS[word] for word in re.findall(r"\w+", query.lower()) if word in TOPICS))


class FixedRetriever(BaseRetriever):
    """Finds the same, whatever the query; LangChain passes on unchecked what a retriever returns."""

    result: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return self.result() if callable(self.result) else self.result


class TopicRetriever(BaseRetriever):
    """Finds one document for each topic that the query names, in the order of the query."""

    def _get_relevant_documents(self, query, *, run_manager):
        return look_up(query)


class FailingRetriever(BaseRetriever):
    """The database is down."""

    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("no database")


def retriever(*texts: str) -> BaseRetriever:
    """A retriever that finds these texts, in this order, whatever the query; by default three."""
    return FixedRetriever(result=lambda: documents(*(texts or (PUMP, FILTER, MOTOR))))


FOUND = [PUMP, FILTER, MOTOR]
"""What `retriever()` finds."""


# Models


class _InTurn:
    """Messages over and over; `itertools.cycle` cannot be copied on Python 3.14."""

    def __init__(self, messages: list[AIMessage]) -> None:
        self._messages = messages
        self._given = 0

    def __iter__(self) -> Iterator[AIMessage]:
        return self

    def __next__(self) -> AIMessage:
        self._given += 1
        return self._messages[(self._given - 1) % len(self._messages)]


def chat_model(*answers: str | AIMessage) -> GenericFakeChatModel:
    """A chat model that gives these answers in turn, over and over; it streams word by word."""
    messages = [AIMessage(answer) if isinstance(answer, str) else answer for answer in answers or (ANSWER,)]
    return GenericFakeChatModel(messages=_InTurn(messages))


def first_chunks(count: int, text: str = ANSWER) -> str:
    """What a reader has got after `count` chunks of what `chat_model(text)` streams."""
    return "".join(re.split(r"(\s)", text)[:count])


class HangingModel(GenericFakeChatModel):
    """Never answers an asynchronous call; says so by calling `waiting`."""

    messages: Any = iter(())
    waiting: Any

    async def _agenerate(self, *args, **kwargs):
        self.waiting()
        await asyncio.Event().wait()


class BrokenModel(GenericFakeChatModel):
    """Fails on every call."""

    messages: Any = iter(())

    def _generate(self, *args, **kwargs) -> ChatResult:
        raise RuntimeError("internal server error")


class StreamingModel(GenericFakeChatModel):
    """Streams these tokens, the last of them marked as such; `then` is called after each of them."""

    messages: Any = iter(())
    tokens: Sequence[str]
    then: Any = None

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for place, text in enumerate(self.tokens):
            chunk = token(text, last=place == len(self.tokens) - 1)
            if run_manager:
                run_manager.on_llm_new_token(text, chunk=chunk)
            yield chunk
            if self.then:
                self.then(text)


def token(text: str, *, last: bool = False) -> ChatGenerationChunk:
    """One streamed token."""
    return ChatGenerationChunk(message=AIMessageChunk(text, chunk_position="last" if last else None))


# Chains

PROMPT = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
CHAT_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Use: {context}"),
        MessagesPlaceholder("chat_history", optional=True),
        ("human", "{input}"),
    ]
)


def answer_chain(model: Runnable | None = None) -> Runnable:
    """Prompt, model, parser: answers from `{"context": ..., "question": ...}`."""
    return PROMPT | (model or chat_model()) | StrOutputParser()


def rag_chain(
    source: Runnable | None = None,
    model: Runnable | None = None,
    formatter: Callable[[Any], str] = join_texts,
) -> Runnable:
    """The chain of the tutorials: retrieve, format, prompt, answer."""
    context = (source or retriever()) | formatter
    return {"context": context, "question": RunnablePassthrough()} | answer_chain(model)
