"""Streams that nobody reads, or not to their end: what the user got until then, and why it ended."""

from __future__ import annotations

import asyncio
import gc

import pytest
from captures import Answered, until
from li_model import Breaks, Hangs, first_tokens
from li_programs import ANSWER, CELLO, HARP, QUESTION, drained, engine, token_by_token

MODES = [
    pytest.param("compact", marks=token_by_token),
    pytest.param("refine", marks=token_by_token),
    "tree_summarize",
    "simple_summarize",
]
BREAKING_MODES = [mode for mode in MODES if mode != MODES[1]]  # refining reads the stream for the first passage itself
each_mode = pytest.mark.parametrize("mode", MODES)

"""A mode that streams token by token in every release."""


def left_after(count):
    return Answered(QUESTION, [CELLO, HARP], first_tokens(count, ANSWER) or None, "aborted")


def stream(mode="tree_summarize"):
    return engine(response_mode=mode, streaming=True).query(QUESTION)


async def async_stream(mode="tree_summarize"):
    return await engine(response_mode=mode, streaming=True).aquery(QUESTION)


# Never read


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize", "generation"])
def test_a_stream_that_is_never_read(captured, mode):
    response = stream(mode)
    assert captured.answers() == []
    del response
    gc.collect()

    contexts = {"generation": [], "refine": [CELLO]}.get(mode, [CELLO, HARP])
    assert captured.answers() == [Answered(QUESTION, contexts, None, "aborted")]


# Left by the reader


@each_mode
def test_a_stream_that_is_closed_after_a_token(captured, model, mode):
    response = stream(mode)
    next(response.response_gen)
    assert model.open_streams == 1
    response.response_gen.close()
    del response  # before it is gone, Python 3.13 ends not all of its generators, without us as well

    assert model.open_streams == 0
    assert captured.answers() == [left_after(1)]


@each_mode
async def test_an_asynchronous_stream_that_is_closed_after_a_token(captured, mode):
    response = await async_stream(mode)
    await anext(response.response_gen)
    await response.response_gen.aclose()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [left_after(1)]


async def test_a_reader_that_is_cancelled_while_the_model_is_silent(captured, model):
    silent = asyncio.Event()
    model.says(Hangs(silent.set, words="It has "))
    reader = asyncio.create_task(drained((await async_stream()).response_gen))
    await silent.wait()
    reader.cancel()
    await asyncio.wait([reader])
    del reader
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [left_after(2)]


# Broken by the model


@pytest.mark.parametrize("mode", BREAKING_MODES)
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_stream_that_breaks(captured, model, mode, asynchronous):
    failure = ConnectionError("connection lost")
    model.says(Breaks("It has ", failure))
    with pytest.raises(ConnectionError) as caught:
        await drained((await async_stream(mode)).response_gen) if asynchronous else list(stream(mode).response_gen)

    assert caught.value is failure
    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], "It has ", "error", "ConnectionError")]
