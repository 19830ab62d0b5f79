"""Streams that are read to their end, wherever and however the application reads them."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from captures import Answered
from li_model import tokens
from li_programs import ANSWER, CELLO, HARP, QUESTION, drained, engine, retriever, token_by_token
from llama_index.core.response_synthesizers import CompactAndRefine
from pydantic import BaseModel

COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


def stream(**options):
    return engine(streaming=True, **options).query(QUESTION)


async def async_stream(**options):
    return await engine(streaming=True, **options).aquery(QUESTION)


# Ways of reading


def in_a_thread(response):
    read = []
    reader = threading.Thread(target=lambda: read.extend(response.response_gen))
    reader.start()
    reader.join()
    return "".join(read)


def passed_on(response):
    def shouting():
        for token in response.response_gen:
            yield token.upper()

    return "".join(shouting()).capitalize()


READERS = {
    "str": str,
    "get_response": lambda response: str(response.get_response()),
    "print_response_stream": lambda response: response.print_response_stream(),
    "bare": lambda response: "".join(response.response_gen),
    "thread": in_a_thread,
    "generator of the application's": passed_on,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_stream_that_is_read_in_any_way(captured, read, capsys):
    response = stream()
    assert captured.answers() == []
    printed = read(response) or capsys.readouterr().out

    assert printed.strip() == ANSWER
    assert captured.answers() == [COMPLETE]


def test_a_stream_every_token_of_which_is_pulled_in_another_thread_and_context(captured):
    """As web servers do with synchronous generators."""
    pulled, end = [], object()
    response_gen = stream().response_gen
    for number in itertools.count():
        assert number < 20
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            token = pool.submit(context.run, next, response_gen, end).result()
        if token is end:
            break
        pulled.append(token)

    assert "".join(pulled) == ANSWER
    assert captured.answers() == [COMPLETE]


# What the model streams


def test_a_stream_of_objects(captured):
    """A structured model streams its object again and again, a little more complete each time."""

    class Strings(BaseModel):
        count: int

    class Structured(CompactAndRefine):
        def get_response(self, query_str, text_chunks, **kwargs):
            yield from (Strings(count=count) for count in (1, 4))
            return "what a generator returns"

    response = Structured(streaming=True).synthesize(QUESTION, retriever().retrieve(QUESTION))

    assert [next(response.response_gen).count for _ in range(2)] == [1, 4]
    with pytest.raises(StopIteration, match="what a generator returns"):
        next(response.response_gen)
    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, [CELLO, HARP], "complete")
    assert "4" in answer.response


# Asynchronous streams


async def test_an_asynchronous_stream_that_is_read_raw_in_another_task(captured):
    response = await async_stream()
    assert await asyncio.create_task(drained(response.response_gen)) == ANSWER

    assert captured.answers() == [COMPLETE]


# What the application sees of it


@token_by_token
def test_each_token_is_pulled_from_the_model_when_the_reader_asks_for_it(captured, model):
    sent = []
    model.after_each_token(sent.append)
    ahead = [(len(sent), token) for token in stream().response_gen]

    assert ahead == [(place, token) for place, token in enumerate(tokens(ANSWER), 1)]
