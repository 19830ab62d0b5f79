"""Runs of workflows that fail, are left, or begin and end where nobody waits for them."""

import asyncio
import contextlib

import pytest
from captures import Answered, until
from li_model import first_tokens
from li_programs import ANSWER, CELLO, HARP, QUESTION, retriever
from li_workflows import Answering, one_step

BOTH = "What of the cello and the harp?"

pytestmark = pytest.mark.usefixtures("expected_failure")


async def test_a_step_that_fails(captured):
    async def answer(event):
        await retriever().aretrieve(event.query)
        raise LookupError("no such page")

    with pytest.raises(LookupError):
        await one_step(answer).run(query=QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.status, answer.error_type) == (QUESTION, "error", "LookupError")
    assert not answer.response


async def test_a_run_that_is_cancelled(captured):
    waiting = asyncio.Event()

    async def answer(event):
        await retriever().aretrieve(event.query)
        waiting.set()
        await asyncio.Event().wait()

    run = one_step(answer).run(query=QUESTION)
    await waiting.wait()
    await run.cancel_run()
    with contextlib.suppress(BaseException):
        await run
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.response or None, answer.status) == (QUESTION, None, "aborted")


# Streamed results


async def streamed():
    return await Answering(lambda response: response, streaming=True).run(query=BOTH)


async def test_a_streamed_result_that_is_left(captured):
    response = await streamed()
    await anext(response.response_gen)
    await response.response_gen.aclose()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], first_tokens(1, ANSWER), "aborted")]


# Where nobody waits


async def test_a_run_that_nobody_waits_for(captured):
    """Its events are followed, or nothing is; the run goes on by itself."""
    run = Answering().run(query=BOTH)
    async for _ in run.stream_events():
        pass
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], ANSWER)]
