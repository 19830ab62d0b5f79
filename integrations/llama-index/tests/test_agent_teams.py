"""Agents that hand the conversation over to each other are one request."""

from __future__ import annotations

import pytest
from captures import Answered
from li_agents import agent, ask, concludes, reasoning_agent, retriever_tool, thinks
from li_model import calls
from li_programs import ANSWER, CELLO, HARP, engine_tool
from llama_index.core.agent.workflow import AgentWorkflow

ASKED = "Which has more strings, and why?"
FINAL = "The harp, for it has no fingerboard."


def team(*, first_tools=(), second_tools=(), **options):
    """One agent receives the user, the other knows."""
    receives = agent(*first_tools, name="reception", description="Receives.", can_handoff_to=["expert"])
    knows = agent(*second_tools, name="expert", description="Knows.", can_handoff_to=["reception"])
    return AgentWorkflow([receives, knows], root_agent="reception", **options)


HAND_OVER = calls("handoff", to_agent="expert", reason="It is about strings.")


LOOKS_UP_HARP = calls("look_up", input="harp")


def thinking():
    return AgentWorkflow([reasoning_agent(retriever_tool(), name="thinker", description="Thinks.")])


TEAMS = {
    "the second searches": (
        lambda: team(second_tools=[retriever_tool()]),
        [HAND_OVER, LOOKS_UP_HARP, FINAL],
        [HARP],
    ),
    "both search": (
        lambda: team(first_tools=[retriever_tool()], second_tools=[engine_tool("search")]),
        [calls("look_up", input="cello"), HAND_OVER, calls("search", input="harp"), ANSWER, FINAL],
        [HARP, CELLO],  # the engine's prompt came before the last one
    ),
    "one agent": (lambda: AgentWorkflow.from_tools_or_functions([retriever_tool()]), [LOOKS_UP_HARP, FINAL], [HARP]),
    "written thoughts": (thinking, [thinks("look_up", '{"input": "harp"}'), concludes(FINAL)], [HARP]),
}


@pytest.mark.parametrize(("make", "said", "contexts"), TEAMS.values(), ids=TEAMS)
async def test_a_team(captured, model, make, said, contexts):
    model.says(*said)
    await ask(make(), ASKED)

    record = captured.record()
    assert Answered.of(record) == Answered(ASKED, contexts, FINAL)
    assert record.name == "AgentWorkflow"
