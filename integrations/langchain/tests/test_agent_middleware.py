"""Agents with middleware, memory and handoffs."""

from __future__ import annotations

from typing import Annotated

import pytest
from agent_programs import calls, scripted_model, search, search_agent, search_tool, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    dynamic_prompt,
)
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    BrokenModel,
    chat_model,
    documents,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


# Middleware that brings documents


def test_a_prompt_that_searches_the_store_shows_no_document(captured):
    @dynamic_prompt
    def prompt(request):
        return "Use:\n" + join_texts(look_up(request.state["messages"][-1].text))

    create_agent(scripted_model(ANSWER), [], middleware=[prompt]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Middleware that changes the course


class BrokenAgentModel(BrokenModel):
    """Takes tools, and fails."""

    def bind_tools(self, tools, **kwargs):
        return self


def test_a_fallback_model(captured):
    fallback = ModelFallbackMiddleware(scripted_model(calls(search("pump")), ANSWER))
    agent = create_agent(BrokenAgentModel(), [search_tool()], middleware=[fallback])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_history_that_a_model_summarises(captured):
    """Nothing was found for this turn. Whether that was observed the contract leaves open: the prompt shows no search."""
    summary = SummarizationMiddleware(
        model=chat_model("They spoke about the pump and its three years."),
        trigger=("messages", 4),
        keep=("messages", 1),
    )
    agent = search_agent(
        calls(search("pump")), ANSWER, "You are welcome.", middleware=[summary], checkpointer=InMemorySaver()
    )
    for question in (QUESTION, "Thank you!"):
        agent.invoke(user_says(question), captured.thread())

    first, second = captured.answers()
    assert first == ON_THE_PUMP
    assert (second.question, second.response, second.status) == ("Thank you!", "You are welcome.", "complete")
    assert not second.contexts


# Memory


def test_documents_of_the_first_turn_are_history_in_the_second(captured):
    agent = search_agent(calls(search("pump")), ANSWER, "You are welcome.", checkpointer=InMemorySaver())
    for question in (QUESTION, "Thank you!"):
        agent.invoke(user_says(question), captured.thread())

    assert captured.answers() == [ON_THE_PUMP, Answered("Thank you!", [], "You are welcome.")]


def test_each_turn_counts_what_it_found_itself(captured):
    script = [calls(search("pump")), ANSWER, calls(search("hose")), "From Lyon."]
    agent = search_agent(*script, checkpointer=InMemorySaver())
    for question in (QUESTION, "And the hoses?"):
        agent.invoke(user_says(question), captured.thread())

    assert captured.answers() == [ON_THE_PUMP, Answered("And the hoses?", [HOSE], "From Lyon.")]


def test_two_conversations_at_the_same_time(captured):
    agent = search_agent(calls(search("pump")), ANSWER, "You are welcome.", "Good day!", checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread("a"))
    agent.invoke(user_says("Thank you!"), captured.thread("a"))
    agent.invoke(user_says("Hello!"), captured.thread("b"))

    assert captured.answers() == [
        ON_THE_PUMP,
        Answered("Thank you!", [], "You are welcome."),
        Answered("Hello!", None, "Good day!"),
    ]


# A person in the loop


def asking_agent(*script):
    approval = HumanInTheLoopMiddleware(interrupt_on={"search_manual": True})
    return search_agent(*script, middleware=[approval], checkpointer=InMemorySaver())


def test_a_tool_call_that_a_person_approves(captured):
    agent = asking_agent(calls(search("pump")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.thread())

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert not waiting.contexts

    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_a_tool_call_that_a_person_changes(captured):
    agent = asking_agent(calls(search("hose")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.thread())
    captured.answers()
    edited = {"type": "edit", "edited_action": {"name": "search_manual", "args": {"query": "pump"}}}
    agent.invoke(Command(resume={"decisions": [edited]}), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


# Handoffs


def handoff(agent_name):
    @tool(f"transfer_to_{agent_name}")
    def transfer(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand the conversation over."""
        message = ToolMessage("Handed over.", tool_call_id=tool_call_id)
        return Command(goto=agent_name, graph=Command.PARENT, update={"messages": [message]})

    return transfer


def desk_and_workshop(last_words=ANSWER):
    """Two agents in one graph; the desk hands over to the workshop, which searches."""
    call = calls(("transfer_to_workshop", {}))
    desk = create_agent(scripted_model(call), [handoff("workshop")], name="desk")
    workshop = search_agent(calls(search("pump")), last_words, name="workshop")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", call_and_keep(desk, call), destinations=("workshop",))
    graph.add_node("workshop", workshop)
    graph.add_edge(START, "desk")
    return graph.compile()


def call_and_keep(agent, call):
    """The tool's command updates the parent's state, which must then hold the call that the tool answers."""

    def node(state):
        return Command(
            goto="workshop",
            update={
                "messages": [call, ToolMessage("Handed over.", tool_call_id=call.tool_calls[0]["id"])],
            },
        )

    return node


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_handoff_to_an_agent_that_searches(captured, call):
    list(getattr(desk_and_workshop(), call)(user_says(QUESTION), captured.config))

    assert captured.answers() == [ON_THE_PUMP]


def test_a_handoff_by_a_command_to_the_parent_graph(captured):
    desk = create_agent(scripted_model(calls(("transfer_to_workshop", {}))), [handoff("workshop")], name="desk")
    workshop = search_agent(calls(search("pump")), ANSWER, name="workshop")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", desk, destinations=("workshop",))
    graph.add_node("workshop", workshop)
    graph.add_edge(START, "desk")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_documents_that_an_earlier_node_put_into_a_message(captured):
    """A node searches a store and hands text and documents on as a tool message of its own making."""

    def find(state: MessagesState):
        found = look_up(state["messages"][-1].text)
        call = calls(search("pump"))
        call_id = call.tool_calls[0]["id"]
        return {"messages": [call, ToolMessage(join_texts(found), tool_call_id=call_id, artifact=documents(PUMP))]}

    graph = StateGraph(MessagesState)
    graph.add_node("find", find)
    graph.add_node("answer", search_agent(ANSWER))
    graph.add_edge(START, "find")
    graph.add_edge("find", "answer")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]
