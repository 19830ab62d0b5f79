"""Requests that are cancelled, left or broken: the status, and what the caller had got by then."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import re

import pytest
from captures import Answered, InAnyOrder, until
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from lc_captures import all_but
from rag_programs import (
    ANSWER,
    FOUND,
    QUESTION,
    HangingModel,
    HangingRetriever,
    PausingModel,
    answer_chain,
    chat_model,
    first_chunks,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


async def cancel_when(waiting, request):
    task = asyncio.create_task(request)
    await waiting.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


# Streams that their reader leaves


async def closed_after(count, stream, captured):
    """Read so many chunks of a stream of either kind, then close it."""
    if hasattr(stream, "aclose"):
        await all_but(count, stream)
        await until(lambda: captured.sink.captures)
    else:
        list(itertools.islice(stream, count))
        stream.close()


each_stream = pytest.mark.parametrize("stream", ["stream", "astream"])


@each_stream
@pytest.mark.parametrize("count", [1, 3])
async def test_a_stream_closed_early_is_aborted_with_what_was_read(captured, stream, count):
    await closed_after(count, getattr(rag_chain(), stream)(QUESTION, captured.config), captured)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(count), "aborted")]


@each_stream
async def test_a_stream_that_is_never_read_is_no_request(captured, stream):
    await closed_after(0, getattr(rag_chain(), stream)(QUESTION, captured.config), captured)

    assert captured.answers() == []


@each_stream
async def test_a_reader_who_stops_at_the_last_token_has_the_whole_answer(captured, stream):
    last = len(re.split(r"(\s)", ANSWER))
    await closed_after(last, getattr(rag_chain(), stream)(QUESTION, captured.config), captured)

    assert captured.answers() == [COMPLETE]


def test_a_reader_who_raises_while_reading_has_left(captured):
    def read():
        for _ in rag_chain().stream(QUESTION, captured.config):
            raise ZeroDivisionError

    with contextlib.suppress(ZeroDivisionError):
        read()
    gc.collect()

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(1), "aborted")]


def test_a_half_read_stream_that_is_kept_is_recorded_when_it_is_dropped(captured):
    held = rag_chain().stream(QUESTION, captured.config)
    next(held)
    rag_chain().invoke("Another question?", captured.config)

    assert captured.answers() == [Answered("Another question?", FOUND, ANSWER)]
    assert captured.handler.open_runs > 0

    del held
    gc.collect()

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(1), "aborted")]


def test_a_stream_of_fields_closed_among_the_tokens(captured):
    program = RunnablePassthrough.assign(
        context=lambda fields: join_texts(retriever().invoke(fields["question"]))
    ).assign(answer=answer_chain())
    read = ""
    chunks = program.stream({"question": QUESTION}, captured.config)
    for chunk in chunks:
        read += chunk.get("answer", "")
        if read == first_chunks(3):
            break
    chunks.close()

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


async def test_a_stream_closed_before_the_model_has_said_a_word(captured):
    """The first chunk holds the documents, which the reader gets while the model is still thinking."""
    thinking = asyncio.Event()

    class SilentModel(HangingModel):
        async def _astream(self, *args, **kwargs):
            self.waiting()
            await asyncio.Event().wait()
            yield

    program = RunnablePassthrough.assign(
        context=RunnableLambda(lambda fields: fields["question"]) | retriever()
    ).assign(answer=answer_chain(SilentModel(waiting=thinking.set)))
    stream = program.astream({"question": QUESTION}, captured.config)
    chunk = await anext(stream)
    while "context" not in chunk:
        chunk = await anext(stream)
    reader = asyncio.create_task(anext(stream))
    await thinking.wait()
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    await stream.aclose()
    del stream, reader
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "aborted")]


def test_a_stream_closed_in_the_words_of_a_second_model(captured):
    """A first model drafts, a second one writes what the reader gets."""
    draft = "The draft says that it is three years."
    program = rag_chain(model=chat_model(draft)) | (lambda text: f"Polish this: {text}") | chat_model(ANSWER)
    chunks = program.stream(QUESTION, captured.config)
    for _ in range(3):
        next(chunks)
    chunks.close()

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


async def test_an_asynchronous_stream_that_is_dropped_and_collected(captured):
    stream = rag_chain().astream(QUESTION, captured.config)
    for _ in range(3):
        await anext(stream)
    del stream
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


async def test_a_stream_of_events_that_is_closed_among_the_tokens(captured):
    """Events are passed on by a queue, so that the model may be a token ahead of the reader."""
    stream = rag_chain().astream_events(QUESTION, captured.config, version="v2")
    async for event in stream:
        if event["event"] == "on_chat_model_stream":
            break
    await stream.aclose()
    del stream
    gc.collect()
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "aborted")
    assert ANSWER.startswith(answer.response)


# Cancelled requests


@pytest.mark.parametrize(
    ("chain", "contexts"),
    [
        (lambda waiting: rag_chain(model=HangingModel(waiting=waiting)), FOUND),
        (lambda waiting: rag_chain(HangingRetriever(waiting=waiting)), []),
    ],
    ids=["model", "retriever"],
)
async def test_a_timeout_while_a_part_works(captured, chain, contexts):
    waiting = asyncio.Event()
    await cancel_when(waiting, chain(waiting.set).ainvoke(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, contexts, None, "aborted")]


async def test_one_of_many_requests_is_cancelled(captured):
    waiting = asyncio.Event()
    slow = rag_chain(model=HangingModel(waiting=waiting.set)).ainvoke("Slow one?", captured.config)
    await asyncio.gather(cancel_when(waiting, slow), rag_chain().ainvoke(QUESTION, captured.config))

    assert captured.answers() == InAnyOrder([COMPLETE, Answered("Slow one?", FOUND, None, "aborted")])


async def test_a_reader_who_is_cancelled_between_two_chunks(captured):
    read = asyncio.Event()

    async def reader():
        async for _ in rag_chain().astream(QUESTION, captured.config):
            read.set()
            await asyncio.Event().wait()

    await cancel_when(read, reader())
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(1), "aborted")]


async def test_an_inner_timeout_that_the_program_answers_itself_is_complete(captured):
    async def answer_in_time(question):
        slow = asyncio.Event()
        waiting = asyncio.Event()
        call = asyncio.create_task(HangingModel(waiting=waiting.set).ainvoke(question, captured.config))
        await waiting.wait()
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        assert not slow.is_set()
        return "The model is too slow today."

    await RunnableLambda(answer_in_time).ainvoke(QUESTION, captured.config)

    answer = captured.answer()
    assert (answer.response, answer.status) == ("The model is too slow today.", "complete")


async def test_a_reader_who_is_cancelled_before_a_later_step_let_anything_through(captured):
    """The last step takes the whole answer before it returns, so that the reader has got nothing."""
    begun = asyncio.Event()

    async def read():
        program = rag_chain(model=PausingModel(waiting=begun.set)) | RunnableLambda(lambda text: text.upper())
        async for _ in program.astream(QUESTION, captured.config):
            pass

    await cancel_when(begun, read())
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "aborted")]


def test_a_keyboard_interrupt_is_the_callers_leaving(captured):
    """The contract knows no name for it; the person at the keyboard has cancelled the request."""

    def interrupted(_):
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        (rag_chain() | interrupted).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "aborted")]
