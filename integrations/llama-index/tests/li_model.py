"""A model that says what it is told and an embedding of words; they need no network and no key."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import PrivateAttr


@dataclass(frozen=True)
class Breaks:
    """The model says these words, then its connection breaks; a reply in one piece never comes."""

    words: str
    error: Exception


@dataclass(frozen=True)
class Hangs:
    """The model says these words and then nothing any more, for ever; says so by calling `waiting`."""

    waiting: Callable[[], None]
    words: str = ""


Line = Any
"""A text; a list of tool calls; an exception to raise; `Breaks` or `Hangs`; or a function of the prompt that gives one
of these."""


def calls(tool: str, **arguments: Any) -> list[ToolSelection]:
    """A line of the model that calls one tool; lines can be added up to call several."""
    number = abs(hash((tool, repr(arguments)))) % 10_000
    return [ToolSelection(tool_id=f"call-{number}", tool_name=tool, tool_kwargs=arguments)]


def tokens(text: str) -> list[str]:
    """How the model cuts a text when it streams: word by word."""
    return re.findall(r"\S+\s*", text)


def first_tokens(count: int, text: str) -> str:
    """What a reader has got after `count` tokens of this text."""
    return "".join(tokens(text)[:count])


class ScriptedModel(FunctionCallingLLM):
    """Says its lines in turn, the last of them over and over; streams word by word."""

    model: str = "scripted"
    context_window: int = 4096
    delta_only: bool = False
    """Streamed chunks hold the new text alone, as those of some providers do."""
    _lines: list[Line] = PrivateAttr(default_factory=list)
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _then: Callable[[str], None] | None = PrivateAttr(default=None)
    _open_streams: int = PrivateAttr(default=0)

    def says(self, *lines: Line) -> ScriptedModel:
        self._lines = list(lines)
        return self

    def after_each_token(self, then: Callable[[str], None]) -> None:
        self._then = then

    @property
    def prompts(self) -> list[str]:
        """All that the model was asked so far."""
        return self._prompts

    @property
    def open_streams(self) -> int:
        """How many streams began and neither ended nor were closed."""
        return self._open_streams

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=128,
            is_chat_model=True,
            is_function_calling_model=True,
            model_name=self.model,
        )

    # Replies in one piece

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=_message(_whole(self._line(_joined(messages)))))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=_message(await _awaited(self._line(_joined(messages)))))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=_whole(self._line(prompt)))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=await _awaited(self._line(prompt)))

    # Streams

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        return self._stream(self._line(_joined(messages)), _chat_chunk)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        return self._astream(self._line(_joined(messages)), _chat_chunk)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        return self._stream(self._line(prompt), _completion_chunk)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        return self._astream(self._line(prompt), _completion_chunk)

    # Tools

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs) -> dict[str, Any]:
        messages = list(chat_history or [])
        if user_msg is not None:
            messages.append(user_msg if isinstance(user_msg, ChatMessage) else ChatMessage(user_msg))
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs) -> list[ToolSelection]:
        called = response.message.additional_kwargs.get("tool_calls", [])
        return [ToolSelection(**call) for call in called]

    # Speaking

    def _line(self, prompt: str) -> Line:
        self._prompts.append(prompt)
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        line = line(prompt) if callable(line) else line
        if isinstance(line, Exception):
            raise line
        return line

    def _stream(self, line: Line, chunk: Callable[[str, Line], Any]) -> Iterator[Any]:
        self._open_streams += 1
        try:
            for new, so_far in self._pieces(line):
                yield chunk(new, so_far)
            if isinstance(line, Breaks):
                raise line.error
        finally:
            self._open_streams -= 1

    async def _astream(self, line: Line, chunk: Callable[[str, Line], Any]) -> AsyncIterator[Any]:
        self._open_streams += 1
        try:
            for new, so_far in self._pieces(line):
                await asyncio.sleep(0)
                yield chunk(new, so_far)
            if isinstance(line, Breaks):
                raise line.error
            if isinstance(line, Hangs):
                await _awaited(line)
        finally:
            self._open_streams -= 1

    def _pieces(self, line: Line) -> Iterator[tuple[str, Line]]:
        """The new text and the message so far."""
        if isinstance(line, list):
            yield "", line
            return
        so_far = ""
        for token in tokens(line if isinstance(line, str) else line.words):
            so_far = token if self.delta_only else so_far + token
            if self._then is not None:
                self._then(token)
            yield token, so_far


class CompletionModel(CustomLLM):
    """Completes prompts and knows no chat; always says the same."""

    text: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="completing")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.text)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        for count, token in enumerate(tokens(self.text), 1):
            yield CompletionResponse(text=first_tokens(count, self.text), delta=token)


class WordEmbedding(BaseEmbedding):
    """Counts words: the more words two texts share, the closer they are."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.0] * 512
        for word in re.findall(r"[a-z]+", text.lower()):
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % 512] += 1.0
        length = math.hypot(*vector) or 1.0
        return [count / length for count in vector]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def _whole(line: Line) -> Line:
    if isinstance(line, Breaks):
        raise line.error
    return line


async def _awaited(line: Line) -> Line:
    await asyncio.sleep(0)
    if isinstance(line, Hangs):
        line.waiting()
        await asyncio.Event().wait()
    return _whole(line)


def _joined(messages: Sequence[ChatMessage]) -> str:
    return "\n".join(f"{message.role.value}: {message.content}" for message in messages)


def _message(line: Line) -> ChatMessage:
    if isinstance(line, str):
        return ChatMessage(line, role="assistant")
    return ChatMessage("", role="assistant", additional_kwargs={"tool_calls": [call.model_dump() for call in line]})


def _chat_chunk(new: str, so_far: Line) -> ChatResponse:
    return ChatResponse(message=_message(so_far), delta=new)


def _completion_chunk(new: str, so_far: Line) -> CompletionResponse:
    return CompletionResponse(text=so_far, delta=new)
