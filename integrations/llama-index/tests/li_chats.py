"""Chat engines that the tests are built from."""

from __future__ import annotations

from typing import Any

from li_programs import TopicRetriever, engine_over
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

SEARCHING_MODES = ["context", "condense_plus_context", "condense_question"]
CONDENSING_MODES = ["condense_plus_context", "condense_question"]


def chat_engine(mode: str, source: Any = None, **options: Any) -> BaseChatEngine:
    """A chat engine that finds one passage for each instrument that it is asked about.

    Its memory is a plain list: the one that LlamaIndex makes by itself keeps database connections that nobody closes.
    """
    options.setdefault("memory", ChatMemoryBuffer.from_defaults())
    source = source or TopicRetriever()
    if mode == "simple":
        return SimpleChatEngine.from_defaults(**options)
    if mode == "context":
        return ContextChatEngine.from_defaults(source, **options)
    if mode == "condense_plus_context":
        return CondensePlusContextChatEngine.from_defaults(source, **options)
    return CondenseQuestionChatEngine.from_defaults(engine_over(source), **options)


def after(*turns: str) -> list[ChatMessage]:
    """A conversation so far: the user's turns and the assistant's alternate."""
    return [ChatMessage(text, role=("user", "assistant")[place % 2]) for place, text in enumerate(turns)]


def remembered(engine: BaseChatEngine) -> list[tuple[str, str | None]]:
    """The conversation that the engine remembers."""
    return [(message.role.value, message.content) for message in engine.chat_history]


def written(response: Any) -> None:
    """Wait for the thread in which LlamaIndex completes a chat stream for the memory, without reading the stream."""
    response.write_response_to_history_thread.join()
