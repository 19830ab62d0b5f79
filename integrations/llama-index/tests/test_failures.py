"""Requests that fail, that are cancelled, and that seem to succeed although something went wrong inside."""

from __future__ import annotations

import asyncio

import pytest
from captures import Answered
from li_model import Hangs
from li_programs import CELLO, HARP, QUESTION, FixedRetriever, HangingRetriever, answer_of, engine, engine_over

pytestmark = pytest.mark.usefixtures("expected_failure")


def error(answer):
    return answer.question, answer.response or None, answer.status, answer.error_type


# Failures


def test_a_retriever_that_fails(captured):
    failure = ConnectionError("no database")
    with pytest.raises(ConnectionError) as caught:
        engine_over(FixedRetriever(failure)).query(QUESTION)

    assert caught.value is failure
    record = captured.record()
    assert error(Answered.of(record)) == (QUESTION, None, "error", "ConnectionError")
    assert not record.contexts
    (search,) = record.retrievals
    assert (search.query, search.contexts, search.error_type) == (QUESTION, (), "ConnectionError")


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "simple_summarize"])
def test_a_model_that_fails(captured, model, mode, way):
    """The passages had reached the synthesizer by then."""
    model.says(RuntimeError("overloaded"))
    with pytest.raises(RuntimeError):
        answer_of(lambda: engine(response_mode=mode), QUESTION, way)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [CELLO, HARP], None, "error", "RuntimeError")
    assert {call.error_type for call in record.generations} == {"RuntimeError"}


# Errors that the framework hides


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("failure", [ValueError("no quota"), TypeError("no quota")], ids=["ValueError", "TypeError"])
def test_an_error_that_becomes_an_empty_response(captured, model, failure, way):
    """Refining takes these for a model that did not keep to the format."""
    model.says(failure)
    response = answer_of(lambda: engine("cello"), QUESTION, way)

    name = type(failure).__name__
    assert captured.answers() == [Answered(QUESTION, [CELLO], response, swallowed=(name,))]


# Cancelled requests


async def cancelled_when(waiting, request):
    task = asyncio.create_task(request)
    await waiting.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_query_that_is_cancelled_while_the_model_thinks(captured, model):
    thinks = asyncio.Event()
    model.says(Hangs(thinks.set))
    await cancelled_when(thinks, engine().aquery(QUESTION))

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], None, "aborted")]


async def test_a_stream_that_is_cancelled_before_it_is_handed_over(captured, model):
    """The retriever still searches when the reader goes."""
    searches = asyncio.Event()
    await cancelled_when(searches, engine_over(HangingRetriever(searches.set), streaming=True).aquery(QUESTION))

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, None, "aborted")
