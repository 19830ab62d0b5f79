"""Requests that fail, that are cancelled, and that seem to succeed although something went wrong inside."""

from __future__ import annotations

import asyncio

import pytest
from captures import Answered, InAnyOrder, until
from li_model import Hangs, calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    FixedRetriever,
    HangingRetriever,
    answer_of,
    engine,
    engine_over,
    retriever,
)
from llama_index.core import get_response_synthesizer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import QueryBundle
from pydantic import BaseModel

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


def test_an_asynchronous_query_whose_retriever_fails(captured):
    with pytest.raises(ConnectionError):
        answer_of(lambda: engine_over(FixedRetriever(ConnectionError("no database"))), QUESTION, "aquery")

    assert error(captured.answer()) == (QUESTION, None, "error", "ConnectionError")


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize", "accumulate"])
def test_a_model_that_fails(captured, model, mode, way):
    """The passages had reached the synthesizer by then."""
    model.says(RuntimeError("overloaded"))
    with pytest.raises(RuntimeError):
        answer_of(lambda: engine(response_mode=mode), QUESTION, way)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [CELLO, HARP], None, "error", "RuntimeError")
    assert {call.error_type for call in record.generations} == {"RuntimeError"}


def test_a_synthesizer_by_hand_whose_model_fails(captured, model):
    model.says(RuntimeError("overloaded"))
    with pytest.raises(RuntimeError):
        get_response_synthesizer().synthesize(QUESTION, retriever().retrieve(QUESTION))

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], None, "error", "RuntimeError")]


def test_a_mode_that_cannot_stream(captured):
    with pytest.raises(ValueError, match="stream"):
        engine(response_mode="accumulate", streaming=True).query(QUESTION)

    assert error(captured.answer()) == (QUESTION, None, "error", "ValueError")


def test_an_error_of_the_applications_own_class(captured):
    class OutOfStock(Exception):
        pass

    with pytest.raises(OutOfStock):
        engine_over(FixedRetriever(OutOfStock())).query(QUESTION)

    assert captured.answer().error_type == "OutOfStock"


def test_a_request_after_a_failed_one(captured, model):
    model.says(RuntimeError("overloaded"), ANSWER)
    with pytest.raises(RuntimeError):
        engine().query("First?")
    engine().query(QUESTION)

    first, second = captured.answers()
    assert first.status == "error"
    assert second == Answered(QUESTION, [CELLO, HARP], ANSWER)


def test_a_keyboard_interrupt_is_no_answer(captured):
    class Interrupted(type(retriever())):
        def _retrieve(self, query_bundle):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine_over(Interrupted([])).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, None)
    assert answer.status in {"aborted", "error"}


# Errors that the framework hides


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("failure", [ValueError("no quota"), TypeError("no quota")], ids=["ValueError", "TypeError"])
def test_an_error_that_becomes_an_empty_response(captured, model, failure, way):
    """Refining takes these for a model that did not keep to the format."""
    model.says(failure)
    response = answer_of(lambda: engine("cello"), QUESTION, way)

    name = type(failure).__name__
    assert captured.answers() == [Answered(QUESTION, [CELLO], response, swallowed=(name,))]


def test_an_error_for_one_of_two_passages(captured, model):
    model.says(ANSWER, ValueError("no quota"))
    response = engine(response_mode="refine").query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], str(response), swallowed=("ValueError",))]


def test_an_answer_of_a_class_that_the_model_cannot_give(captured, model):
    class Strings(BaseModel):
        count: int

    model.says(calls("Strings", count="many"))
    engine("cello", output_cls=Strings).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "Empty Response", "complete")
    assert answer.swallowed


def test_nothing_is_swallowed_in_a_good_answer(captured):
    engine().query(QUESTION)

    assert captured.record().swallowed_errors == ()


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


async def test_a_query_that_is_cancelled_while_the_retriever_searches(captured):
    searches = asyncio.Event()
    await cancelled_when(searches, engine_over(HangingRetriever(searches.set)).aquery(QUESTION))

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, None, "aborted")
    assert not answer.contexts


async def test_a_timeout(captured, model):
    model.says(Hangs(lambda: None))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(engine().aquery(QUESTION), 0.01)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], None, "aborted")]


async def test_a_cancelled_synthesizer_by_hand(captured, model):
    thinks = asyncio.Event()
    model.says(Hangs(thinks.set))
    nodes = await retriever().aretrieve(QUESTION)
    await cancelled_when(thinks, get_response_synthesizer().asynthesize(QueryBundle(QUESTION), nodes))

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], None, "aborted")]


async def test_one_of_several_queries_is_cancelled(captured, model):
    thinks = asyncio.Event()
    model.says(lambda prompt: Hangs(thinks.set) if "Slow?" in prompt else ANSWER)
    await asyncio.gather(cancelled_when(thinks, engine().aquery("Slow?")), engine().aquery(QUESTION))

    assert captured.answers() == InAnyOrder(
        [Answered("Slow?", [CELLO, HARP], None, "aborted"), Answered(QUESTION, [CELLO, HARP], ANSWER)]
    )


async def test_a_query_that_is_cancelled_before_it_began(captured):
    task = asyncio.create_task(engine().aquery(QUESTION))
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: captured.sink.captures)

    assert captured.answers() == []


async def test_a_stream_that_is_cancelled_before_it_is_handed_over(captured, model):
    """The retriever still searches when the reader goes."""
    searches = asyncio.Event()
    await cancelled_when(searches, engine_over(HangingRetriever(searches.set), streaming=True).aquery(QUESTION))

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, None, "aborted")


async def test_an_inner_timeout_that_the_application_answers_itself(captured, model):
    """The inner query is cancelled; the request as a whole is not."""
    model.says(Hangs(lambda: None))

    class Patient(CustomQueryEngine):
        def custom_query(self, query_str):
            raise NotImplementedError

        async def acustom_query(self, query_str):
            try:
                return str(await asyncio.wait_for(engine().aquery(query_str), 0.01))
            except asyncio.TimeoutError:
                return "Please try again."

    await Patient().aquery(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "Please try again.", "complete")
