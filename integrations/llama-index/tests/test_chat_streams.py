"""Streamed turns of a conversation: LlamaIndex itself reads them to the end, for the memory."""

from __future__ import annotations

import contextlib
import threading

import pytest
from captures import Answered
from li_chats import CONDENSING_MODES, SEARCHING_MODES, after, chat_engine, remembered, written
from li_model import Breaks
from li_programs import ANSWER, CELLO, OBOE, drained

SAID = "Tell me about the cello."
AGAIN = "And the other one?"
CONDENSED = "What is an oboe?"

COMPLETE = Answered(SAID, [CELLO], ANSWER)

each_mode = pytest.mark.parametrize("mode", SEARCHING_MODES)


each_way = pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])


async def read(conversation, text, way, **options):
    """What the reader of a streamed turn gets."""
    if way == "stream_chat":
        return "".join(conversation.stream_chat(text, **options).response_gen)
    return await drained((await conversation.astream_chat(text, **options)).async_response_gen())


@each_mode
@each_way
async def test_a_streamed_turn(captured, mode, way):
    assert await read(chat_engine(mode), SAID, way) == ANSWER
    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("mode", CONDENSING_MODES)
@each_way
async def test_a_streamed_second_turn_is_condensed_for_the_search_whoever_else_listens(new_captures, model, mode, way):
    one, other = new_captures(), new_captures()
    model.says(CONDENSED, "Of cane.")
    await read(chat_engine(mode), AGAIN, way, chat_history=after("Hello", "Good morning"))

    assert one.answers() == other.answers() == [Answered(AGAIN, [OBOE], "Of cane.")]


@each_mode
def test_a_streamed_turn_that_nobody_reads(captured, mode):
    written(chat_engine(mode).stream_chat(SAID))

    assert captured.answers() == [COMPLETE]


@each_way
async def test_a_streamed_turn_that_its_reader_leaves_is_complete_for_the_framework_reads_on(captured, way):
    """For the memory; and it waits for the end when the reader's generator closes."""
    if way == "stream_chat":
        response_gen = chat_engine("context").stream_chat(SAID).response_gen
        next(response_gen)
        response_gen.close()
    else:
        response_gen = (await chat_engine("context").astream_chat(SAID)).async_response_gen()
        await anext(response_gen)
        await response_gen.aclose()

    assert captured.answers() == [COMPLETE]


# Streams that break


@contextlib.contextmanager
def errors_in_threads():
    """The errors that the framework's threads end with; they would be warnings else."""
    seen, hook = [], threading.excepthook
    threading.excepthook = lambda details: seen.append(details.exc_value)
    try:
        yield seen
    finally:
        threading.excepthook = hook


@pytest.mark.parametrize("mode", ["context", "condense_plus_context", "simple"])
def test_a_streamed_turn_that_breaks(captured, model, mode):
    """The writing thread sees the error; the reader gets the same object."""
    failure = RuntimeError("connection lost")
    model.says(Breaks("It has ", failure))
    with errors_in_threads(), pytest.raises(RuntimeError) as caught:
        list(chat_engine(mode).stream_chat(SAID).response_gen)

    assert caught.value is failure
    answer = captured.answer()
    assert (answer.question, answer.status, answer.error_type) == (SAID, "error", "RuntimeError")
    assert (answer.response or "") in ("", "It has ")


# What the application sees of it


def test_a_streamed_turn_leaves_response_and_memory_as_ever(captured):
    conversation = chat_engine("context")
    response = conversation.stream_chat(SAID)
    tokens = list(response.response_gen)

    assert "".join(tokens) == response.response == str(response) == ANSWER
    assert [source.node.node_id for source in response.source_nodes] == ["cello"]
    assert [source.tool_name for source in response.sources] == ["retriever"]
    assert remembered(conversation) == [("user", SAID), ("assistant", ANSWER)]
