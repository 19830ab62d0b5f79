"""Agents that ask other agents."""

from __future__ import annotations

from agent_programs import agent_with, calls, search, search_agent, search_tool, user_says
from captures import Answered
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import tool
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    chat_model,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


def expert(*script, name="expert"):
    agent = search_agent(*script, name=name)

    @tool
    def ask_expert(question: str) -> str:
        """Ask the expert."""
        return agent.invoke(user_says(question))["messages"][-1].text

    return ask_expert


ASK = ("ask_expert", {"question": "The pump's warranty?"})


def test_an_agent_that_is_another_agents_tool(captured):
    agent = agent_with(expert(calls(search("pump")), "The pump has three years."), script=[calls(ASK), ANSWER])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_an_agent_that_asks_an_expert_and_searches_itself(captured):
    agent = agent_with(
        expert(calls(search("pump")), "The pump has three years."),
        search_tool(),
        script=[calls(ASK), calls(search("hose")), ANSWER],
    )
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


def test_two_agents_whose_answers_are_joined(captured):
    pump = search_agent(calls(search("pump")), "Three years it is.")
    hose = search_agent(calls(search("hose")), "From Lyon it is.")

    def ask_both(question):
        replies = [agent.invoke(user_says(question))["messages"][-1].text for agent in (pump, hose)]
        return " ".join(replies)

    RunnableLambda(ask_both).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], "Three years it is. From Lyon it is.")]


def test_two_agents_at_the_same_time_whose_answers_a_model_combines(captured):
    agents = RunnableParallel(
        pump=search_agent(calls(search("pump")), "Three years it is."),
        hose=search_agent(calls(search("hose")), "From Lyon it is."),
    )

    def combine(states):
        replies = [state["messages"][-1].text for state in states.values()]
        return f"Combine: {' / '.join(replies)}"

    (agents | combine | chat_model()).invoke(user_says(QUESTION), captured.config)

    answer = captured.answer()
    assert (answer.question, set(answer.contexts), answer.response) == (QUESTION, {PUMP, HOSE}, ANSWER)
