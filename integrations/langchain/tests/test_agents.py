"""Agents that search with tools."""

from __future__ import annotations

import pytest
from agent_programs import agent_with, calls, scripted_model, search, search_agent, user_says
from captures import Answered
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    documents,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)
LOOK_UP = ("look_up_page", {"query": "pump"})


@pytest.mark.parametrize(("script", "contexts"), [([], None), ([calls(search("weather"))], [])])
def test_an_agent_that_does_not_search_or_finds_nothing(captured, script, contexts):
    """Without a search no callback shows a document or an empty search result."""
    search_agent(*script, "I do not know.").invoke(user_says("What of the weather?"), captured.config)

    assert captured.answers() == [Answered("What of the weather?", contexts, "I do not know.")]


@pytest.mark.parametrize("handled_by", ["the tool", "the graph"])
def test_a_failure_of_a_tool_that_is_handled_is_an_error_of_its_call(captured, handled_by):
    """The model reads a message of the status `error`: so does a tool of an MCP server fail."""

    def look_up_page(query: str) -> str:
        """Looks something up."""
        raise ToolException("the archive is closed")

    failing = StructuredTool.from_function(look_up_page, handle_tool_error=handled_by == "the tool")
    agent = agent_with(failing, script=[calls(LOOK_UP), "I do not know."])
    if handled_by == "the graph":
        node = ToolNode([failing], handle_tool_errors=True)
        graph = StateGraph(MessagesState)
        model = scripted_model(calls(LOOK_UP), "I do not know.")
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", node)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile()
    agent.invoke(user_says("Who?"), captured.config)

    (record,) = captured.records()
    (call,) = record.tool_calls
    assert "the archive is closed" in call.error.message


# Tools of the program's own


def test_a_tool_that_updates_the_state_by_a_command(captured):
    @tool
    def look_up_page(query: str) -> Command:
        """Look something up."""
        found = look_up(query)
        call_id = next(name for name in known_calls)
        message = ToolMessage(join_texts(found), tool_call_id=call_id, artifact=found)
        return Command(update={"messages": [message]})

    question = calls(LOOK_UP)
    known_calls = iter([question.tool_calls[0]["id"]])
    agent_with(look_up_page, script=[question, ANSWER]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Agents that are called with a conversation


@pytest.mark.parametrize(
    ("asked", "query", "contexts"),
    [("Thank you!", None, []), ("And the hoses?", "hose", [HOSE]), ("Three, really?", "pump", [PUMP])],
    ids=["no search", "another search", "the same document again"],
)
def test_documents_of_an_earlier_turn_are_history(captured, asked, query, contexts):
    """The caller keeps the conversation and calls the agent with all of it."""
    earlier = calls(search("pump"))
    history = [
        HumanMessage(QUESTION),
        earlier,
        ToolMessage(PUMP, tool_call_id=earlier.tool_calls[0]["id"], artifact=documents(PUMP)),
        AIMessage(ANSWER),
    ]
    script = ["You are welcome."] if query is None else [calls(search(query)), "You are welcome."]
    search_agent(*script).invoke({"messages": [*history, HumanMessage(asked)]}, captured.config)

    assert captured.answers() == [Answered(asked, contexts, "You are welcome.")]


# A person in the loop


def asking_agent(*script):
    approval = HumanInTheLoopMiddleware(interrupt_on={"search_manual": True})
    return search_agent(*script, middleware=[approval], checkpointer=InMemorySaver())


def test_a_tool_call_that_a_person_changes(captured):
    agent = asking_agent(calls(search("hose")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.thread())
    captured.answers()
    edited = {"type": "edit", "edited_action": {"name": "search_manual", "args": {"query": "pump"}}}
    agent.invoke(Command(resume={"decisions": [edited]}), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_an_agent_that_goes_on_answers_the_user_and_not_its_tools_argument(captured):
    @tool(response_format="content_and_artifact")
    def find(query: str):
        """Find."""
        interrupt("May I?")
        return join_texts(look_up(query)), look_up(query)

    agent = agent_with(find, script=[calls(("find", {"query": "pump"})), ANSWER], checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread())
    agent.invoke(Command(resume="yes"), captured.thread())

    assert captured.answers()[1] == ON_THE_PUMP
