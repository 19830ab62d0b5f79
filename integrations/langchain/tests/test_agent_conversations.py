"""Agents that are called with a conversation."""

from __future__ import annotations

from agent_programs import calls, search, search_agent
from captures import Answered
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    documents,
)


def test_documents_of_an_earlier_turn_are_history(captured):
    """The caller keeps the conversation and calls the agent with all of it."""
    earlier = calls(search("pump"))
    history = [
        HumanMessage(QUESTION),
        earlier,
        ToolMessage(PUMP, tool_call_id=earlier.tool_calls[0]["id"], artifact=documents(PUMP)),
        AIMessage(ANSWER),
    ]
    agent = search_agent("You are welcome.")
    agent.invoke({"messages": [*history, HumanMessage("Thank you!")]}, captured.config)

    assert captured.answers() == [Answered("Thank you!", [], "You are welcome.")]


def test_a_new_search_after_earlier_turns(captured):
    earlier = calls(search("pump"))
    history = [
        HumanMessage(QUESTION),
        earlier,
        ToolMessage(PUMP, tool_call_id=earlier.tool_calls[0]["id"], artifact=documents(PUMP)),
        AIMessage(ANSWER),
    ]
    agent = search_agent(calls(search("hose")), "From Lyon.")
    agent.invoke({"messages": [*history, HumanMessage("And the hoses?")]}, captured.config)

    assert captured.answers() == [Answered("And the hoses?", [HOSE], "From Lyon.")]


def test_the_same_document_found_again_in_a_later_turn(captured):
    """It stands in the history too, but it was found for this question as well."""
    earlier = calls(search("pump"))
    history = [
        HumanMessage(QUESTION),
        earlier,
        ToolMessage(PUMP, tool_call_id=earlier.tool_calls[0]["id"], artifact=documents(PUMP)),
        AIMessage(ANSWER),
    ]
    agent = search_agent(calls(search("pump")), "Yes, three.")
    agent.invoke({"messages": [*history, HumanMessage("Three, really?")]}, captured.config)

    assert captured.answers() == [Answered("Three, really?", [PUMP], "Yes, three.")]
