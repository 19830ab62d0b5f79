"""Runs that wait for a person: those that go on, and those that are interrupted and resumed.

The framework reads the annotations of steps at run time, so that here they are no strings.
"""

import contextlib
import json
import sys

import pytest
from captures import Answered
from li_agents import agent, retriever_tool
from li_model import calls
from li_programs import ANSWER, CELLO, HARP, QUESTION, ask_model, retriever
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    JsonPickleSerializer,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)

YES = HumanResponseEvent(response="yes")
tasks_tell_of_cancelling = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="before Python 3.11 a task does not tell whether it is being cancelled"
)


class Approval(Workflow):
    """Searches, asks the person in an event of its own, and answers in another step."""

    @step
    async def first(self, context: Context, event: StartEvent) -> InputRequiredEvent:
        (node,) = await retriever("harp" if "harp" in event.query else "cello").aretrieve(event.query)
        await context.store.set("prompt", f"{node.get_content(MetadataMode.LLM)}\n{event.query}")
        return InputRequiredEvent(prefix="Really?")

    @step
    async def then(self, context: Context, event: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=ask_model(await context.store.get("prompt")))


class Drafting(Workflow):
    """Answers before it asks; the person's word calls no model any more."""

    @step
    async def first(self, context: Context, event: StartEvent) -> InputRequiredEvent:
        (node,) = await retriever("cello").aretrieve(event.query)
        await context.store.set("draft", ask_model(f"{node.get_content(MetadataMode.LLM)}\n{event.query}"))
        return InputRequiredEvent(prefix="Send it?")

    @step
    async def then(self, context: Context, event: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=await context.store.get("draft"))


class Waiting(Workflow):
    """Waits inside a step, which is run again from its beginning."""

    @step
    async def answer(self, context: Context, event: StartEvent) -> StopEvent:
        await context.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Really?"))
        (node,) = await retriever("cello").aretrieve(event.query)
        return StopEvent(result=ask_model(f"{node.get_content(MetadataMode.LLM)}\n{event.query}"))


async def interrupted(flow, serializer=None, **asked):
    """Run until the person is asked, and leave; what a server would save."""
    run = flow.run(**asked)
    async for event in run.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    saved = run.ctx.to_dict(serializer=serializer)
    await run.cancel_run()
    with contextlib.suppress(BaseException):
        await run
    return json.loads(json.dumps(saved))


async def resume(flow, saved, serializer=None):
    run = flow.run(ctx=Context.from_dict(flow, saved, serializer=serializer))
    run.ctx.send_event(YES)
    return await run


@pytest.mark.parametrize(("flow", "in_prompt"), [(Approval, []), (Drafting, [CELLO])])
async def test_a_run_that_is_resumed(captured, flow, in_prompt):
    await resume(flow(), await interrupted(flow(), query=QUESTION))

    first, then = captured.answers()
    assert (first.question, first.contexts, first.status) == (QUESTION, in_prompt, "interrupted")
    assert then == Answered(QUESTION, [CELLO], ANSWER)
    assert captured.handler.open_spans == 0


@tasks_tell_of_cancelling
async def test_a_run_that_waits_inside_a_step_is_resumed(captured):
    await resume(Waiting(), await interrupted(Waiting(), query=QUESTION))

    first, then = captured.answers()
    assert (first.question, first.response, first.status) == (QUESTION, None, "interrupted")
    assert then == Answered(QUESTION, [CELLO], ANSWER)


async def test_runs_that_wait_at_the_same_time_are_told_apart(captured):
    asked = ["The cello?", "The harp?"]
    saved = [await interrupted(Approval(), query=question) for question in asked]
    for one in saved:
        await resume(Approval(), one)

    answers = [answer for answer in captured.answers() if answer.status == "complete"]
    assert [(answer.question, answer.contexts) for answer in answers] == [(asked[0], [CELLO]), (asked[1], [HARP])]


@tasks_tell_of_cancelling
async def test_an_agent_that_is_resumed(captured, model):
    async def confirm(ctx: Context) -> str:
        """Ask the person."""
        reply = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Really?"))
        return reply.response

    def asked():
        return agent(retriever_tool(), confirm)

    model.says(calls("look_up", input="cello"), calls("confirm"), ANSWER)
    whole = JsonPickleSerializer()  # the other one leaves the memory out
    await resume(asked(), await interrupted(asked(), whole, user_msg=QUESTION), whole)

    first, then = captured.answers()
    assert (first.question, first.contexts, first.status) == (QUESTION, [CELLO], "interrupted")
    assert (then.question, then.contexts, then.response, then.status) == (QUESTION, [CELLO], ANSWER, "complete")
