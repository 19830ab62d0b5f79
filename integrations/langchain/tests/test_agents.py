"""Agents that search with tools."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import pytest
from agent_programs import agent_with, calls, scripted_model, search, search_agent, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from rag_programs import (
    ANSWER,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    chat_model,
    documents,
    join_texts,
    look_up,
    rag_chain,
    retriever,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)
LOOK_UP = ("look_up_page", {"query": "pump"})


def looking_up_with(look_up_page):
    """An agent that calls this tool once."""
    return agent_with(look_up_page, script=[calls(LOOK_UP), ANSWER])


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
    assert (record.status, call.name) == ("complete", "look_up_page")
    assert call.error_type in {"tool_error", "ToolException"}
    assert "the archive is closed" in call.error.message


# Tools of the program's own


ARTIFACTS = {
    "documents": lambda found: found,
    "none": lambda found: [],
    "field": lambda found: {"documents": found, "seconds": 0.2},
    "scores": lambda found: [(page, 0.5) for page in found],
    "dictionaries": lambda found: [page.model_dump() for page in found],
    "one document": lambda found: found[0],
    "tuple": tuple,
}


@pytest.mark.parametrize("form", ARTIFACTS)
def test_documents_in_an_artifact_of_any_form(captured, form):
    @tool(response_format="content_and_artifact")
    def look_up_page(query: str) -> tuple[str, Any]:
        """Look something up."""
        found = look_up(query)
        return join_texts(found), ARTIFACTS[form](found)

    looking_up_with(look_up_page).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None if form == "none" else [PUMP], ANSWER)]


@tool
def find_pages(query: str) -> list[Document]:
    """Find pages."""
    return look_up(query)


def test_a_tool_whose_documents_a_function_uses(captured):
    found = RunnableLambda(lambda query: find_pages.invoke({"query": query}))
    rag_chain((lambda question: "motor pump") | found).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP], ANSWER)]


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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_executors_empty_steps_are_no_search(captured, call):
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent

    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        return PUMP

    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), MessagesPlaceholder("agent_scratchpad")])
    agent = create_tool_calling_agent(scripted_model(calls(LOOK_UP), ANSWER), [look_up_page], prompt)
    executor = AgentExecutor(agent=agent, tools=[look_up_page])
    list(getattr(executor, call)({"input": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


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


# Agents that ask other agents


def test_what_a_tool_read_of_an_inner_answer_makes_its_documents_count(captured):
    @tool
    def ask(text: str) -> str:
        """Ask."""
        inner = rag_chain(retriever(MOTOR), chat_model("one two three four five"))
        with contextlib.closing(inner.stream(text)) as words:
            return "".join(next(words) for _ in range(5))

    agent_with(ask, script=[calls(("ask", {"text": "w?"})), ANSWER]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR], ANSWER)]


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


# Handoffs


def handoff(agent_name):
    @tool(f"transfer_to_{agent_name}")
    def transfer(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand the conversation over."""
        message = ToolMessage("Handed over.", tool_call_id=tool_call_id)
        return Command(goto=agent_name, graph=Command.PARENT, update={"messages": [message]})

    return transfer


def test_a_handoff_by_a_command_to_the_parent_graph(captured):
    desk = create_agent(scripted_model(calls(("transfer_to_workshop", {}))), [handoff("workshop")], name="desk")
    workshop = search_agent(calls(search("pump")), ANSWER, name="workshop")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", desk, destinations=("workshop",))
    graph.add_node("workshop", workshop)
    graph.add_edge(START, "desk")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]
