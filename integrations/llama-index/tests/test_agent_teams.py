"""Agents that hand the conversation over to each other are one request."""

from __future__ import annotations

import pytest
from captures import Answered
from li_agents import agent, ask, reasoning_agent, retriever_tool
from li_model import calls
from li_programs import ANSWER, CELLO, HARP, engine_tool
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.tools import FunctionTool

ASKED = "Which has more strings, and why?"
FINAL = "The harp, for it has no fingerboard."


def team(*, first_tools=(), second_tools=(), **options):
    """One agent receives the user, the other knows."""
    receives = agent(*first_tools, name="reception", description="Receives.", can_handoff_to=["expert"])
    knows = agent(*second_tools, name="expert", description="Knows.", can_handoff_to=["reception"])
    return AgentWorkflow([receives, knows], root_agent="reception", **options)


HAND_OVER = calls("handoff", to_agent="expert", reason="It is about strings.")


async def test_an_agent_that_hands_over_to_one_that_searches(captured, model):
    model.says(HAND_OVER, calls("look_up", input="harp"), FINAL)
    await ask(team(second_tools=[retriever_tool()]), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_two_agents_that_both_search(captured, model):
    model.says(calls("look_up", input="cello"), HAND_OVER, calls("search", input="harp"), ANSWER, FINAL)
    both = team(first_tools=[retriever_tool()], second_tools=[engine_tool("search")])
    await ask(both, ASKED)

    assert captured.answers() == [Answered(ASKED, [CELLO, HARP], FINAL)]


async def test_a_team_of_one(captured, model):
    model.says(calls("look_up", input="harp"), FINAL)
    await ask(AgentWorkflow.from_tools_or_functions([retriever_tool()]), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_a_team_with_an_agent_that_writes_down_its_thoughts(captured, model):
    thinking = reasoning_agent(retriever_tool(), name="thinker", description="Thinks.")
    model.says(
        'Thought: I look it up.\nAction: look_up\nAction Input: {"input": "harp"}\n',
        f"Thought: I can answer without using any more tools.\nAnswer: {FINAL}\n",
    )
    await ask(AgentWorkflow([thinking]), ASKED)

    assert captured.answers() == [Answered(ASKED, [HARP], FINAL)]


async def test_an_agent_that_has_others_for_tools(captured, model):
    """The pattern of the orchestrator: each of the others is run inside a tool."""
    searcher = agent(retriever_tool(), name="searcher")

    async def search(question: str) -> str:
        return str(await searcher.run(user_msg=question))

    model.says(
        calls("search", question="The cello?"),
        calls("look_up", input="cello"),
        "Four.",
        calls("search", question="The harp?"),
        calls("look_up", input="harp"),
        "Forty-seven.",
        FINAL,
    )
    await ask(agent(FunctionTool.from_defaults(async_fn=search)), ASKED)

    assert captured.answers() == [Answered(ASKED, [CELLO, HARP], FINAL)]


async def test_the_record_names_the_team(captured, model):
    model.says(FINAL)
    await ask(team(), ASKED)

    assert captured.record().name == "AgentWorkflow"


@pytest.mark.usefixtures("expected_failure")
async def test_a_team_whose_second_agent_fails(captured, model):
    model.says(calls("look_up", input="cello"), HAND_OVER, RuntimeError("overloaded"))
    with pytest.raises(RuntimeError):
        await ask(team(first_tools=[retriever_tool()]), ASKED)

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (ASKED, [CELLO])
    assert (answer.status, answer.error_type) == ("error", "RuntimeError")
