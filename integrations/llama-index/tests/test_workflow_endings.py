"""Runs of workflows that fail, are left, or begin and end where nobody waits for them."""

import asyncio
import contextlib
import gc

import pytest
from captures import Answered, until
from li_model import Breaks, first_tokens
from li_programs import ANSWER, CELLO, HARP, QUESTION, TopicRetriever, drained, engine, retriever
from li_workflows import Answering, Retrieved, one_step
from llama_index.core import get_response_synthesizer
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from workflows.retry_policy import retry_policy, stop_after_attempt, wait_none

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


async def test_a_first_step_that_fails(captured):
    async def answer(event):
        raise LookupError("no such page")

    with pytest.raises(LookupError):
        await one_step(answer).run(query=QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.status, answer.error_type) == (QUESTION, "error", "LookupError")


async def test_a_step_that_takes_too_long(captured):
    async def answer(event):
        await retriever().aretrieve(event.query)
        await asyncio.Event().wait()

    with pytest.raises(Exception, match="timed out"):
        await one_step(answer, timeout=0.02).run(query=QUESTION)
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.response or None) == (QUESTION, None)
    assert answer.status in {"error", "aborted"}


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


async def test_a_step_that_is_tried_again(captured, model):
    """The user sees the second attempt only."""
    model.says(RuntimeError("overloaded"), ANSWER)

    class Trying(Workflow):
        @step
        async def retrieve(self, event: StartEvent) -> Retrieved:
            return Retrieved(nodes=await TopicRetriever().aretrieve(event.query), query=event.query)

        @step(retry_policy=retry_policy(wait=wait_none(), stop=stop_after_attempt(2)))
        async def answer(self, event: Retrieved) -> StopEvent:
            return StopEvent(result=str(await get_response_synthesizer().asynthesize(event.query, event.nodes)))

    assert await Trying().run(query=BOTH) == ANSWER

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (BOTH, [CELLO, HARP])
    assert (answer.response, answer.status) == (ANSWER, "complete")


async def test_a_step_that_handles_an_error_itself(captured, model):
    model.says(RuntimeError("overloaded"))

    async def answer(event):
        try:
            return str(await engine().aquery(event.query))
        except RuntimeError:
            return "Please try again."

    await one_step(answer).run(query=QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "Please try again.", "complete")


# Streamed results


async def streamed():
    return await Answering(lambda response: response, streaming=True).run(query=BOTH)


async def test_a_streamed_result_that_is_never_read(captured):
    response = await streamed()
    del response
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (BOTH, [CELLO, HARP])
    assert (answer.response or None, answer.status) == (None, "aborted")


async def test_a_streamed_result_that_is_left(captured):
    response = await streamed()
    await anext(response.response_gen)
    await response.response_gen.aclose()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], first_tokens(1, ANSWER), "aborted")]


async def test_a_streamed_result_that_breaks(captured, model):
    model.says(Breaks("It has ", ConnectionError("connection lost")))
    with pytest.raises(ConnectionError):
        await drained((await streamed()).response_gen)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], "It has ", "error", "ConnectionError")]


# Where nobody waits


async def test_a_run_that_nobody_waits_for(captured):
    """Its events are followed, or nothing is; the run goes on by itself."""
    run = Answering().run(query=BOTH)
    async for _ in run.stream_events():
        pass
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(BOTH, [CELLO, HARP], ANSWER)]


async def test_a_run_that_a_step_starts_and_does_not_wait_for(captured):
    """It may end after the run that started it: the first one's answer is recorded in any case, as it was."""
    started = []

    async def answer(event):
        started.append(Answering().run(query=f"Later: {event.query}"))
        return "It is being looked up."

    await one_step(answer).run(query=BOTH)
    await started.pop()
    await until(lambda: captured.sink.captures)

    first, *_ = captured.answers()
    assert (first.question, first.response, first.status) == (BOTH, "It is being looked up.", "complete")


def test_a_run_whose_loop_ends_before_it(captured):
    waiting = []

    async def hang(event):
        waiting.append(event)
        await asyncio.Event().wait()

    async def main():
        run = one_step(hang, timeout=None).run(query=QUESTION)
        while not waiting:
            await asyncio.sleep(0)
        del run

    asyncio.run(main())
    gc.collect()

    answer = captured.answer()
    assert (answer.question, answer.response or None) == (QUESTION, None)
    assert answer.status in {"aborted", "error"}
