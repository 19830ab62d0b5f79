"""One run of an agent is one request: the user's words, all that its searches brought, and its last word."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from captures import Answered, until
from li_agents import agent, ask, retriever_tool
from li_model import Hangs, calls
from li_programs import CELLO, HARP, engine_tool
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

ASKED = "Which has more strings, and why?"
FINAL = "The harp, for it has no fingerboard."

SEARCHED = Answered(ASKED, [CELLO, HARP], FINAL)


@pytest.fixture
def searches(model):
    """The agent asks an engine in words of its own; the engine's answer is a step on the way."""
    return model.says(calls("search", input="strings?"), "Four and forty-seven.", FINAL)


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_agent_that_asks_an_engine(captured, searches, streaming):
    await ask(agent(engine_tool("search", "cello", "harp"), streaming=streaming), ASKED)

    assert captured.answers() == [SEARCHED]


TALK = [ChatMessage("Hello"), ChatMessage("Good morning", role="assistant")]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([ASKED], {}),
        ([], {"user_msg": ChatMessage(ASKED)}),
        ([], {"chat_history": [*TALK, ChatMessage(ASKED)]}),
        ([], {"user_msg": ASKED, "chat_history": TALK}),
        ([ASKED], {"memory": ChatMemoryBuffer.from_defaults()}),
    ],
    ids=["positional", "message", "end of a conversation", "conversation and question", "memory"],
)
async def test_an_agent_with_a_question_in_any_form(captured, searches, given, named):
    await agent(engine_tool("search", "cello", "harp")).run(*given, **named)

    assert captured.answers() == [SEARCHED]


# Agents that do not get there


@pytest.mark.usefixtures("expected_failure")
async def test_an_agent_that_is_cancelled(captured, model):
    silent = asyncio.Event()
    model.says(calls("look_up", input="cello"), Hangs(silent.set))
    run = agent(retriever_tool()).run(ASKED)
    await silent.wait()
    await run.cancel_run()
    with contextlib.suppress(BaseException):
        await run
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (ASKED, [CELLO], "aborted")
    assert not answer.response
