"""What a graph is called with: messages in many forms, commands, nothing at all."""

from __future__ import annotations

import pytest
from agent_programs import (
    RagState,
    answer_node,
    calls,
    rag_graph,
    retrieve_node,
    scripted_model,
    search,
    search_agent,
    search_tool,
    sequence,
    user_says,
)
from captures import Answered
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import MessagesState
from langgraph.types import Command, interrupt
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    TopicRetriever,
    answer_chain,
    chat_model,
    documents,
    join_texts,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)
AND_THE_HOSE = Answered("And the hose?", [HOSE], ANSWER)


@pytest.mark.parametrize(
    "messages",
    [
        QUESTION,
        ("user", QUESTION),
        {"role": "user", "content": QUESTION},
        HumanMessage(QUESTION),
        [QUESTION],
        [("user", QUESTION)],
        [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
        [{"type": "human", "content": QUESTION}],
    ],
    ids=["text", "pair", "role", "message", "texts", "pairs", "blocks", "type"],
)
def test_the_users_message_in_any_form(captured, messages):
    search_agent(calls(search("pump")), ANSWER).invoke({"messages": messages}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def answer_messages(state: MessagesState):
    found = TopicRetriever().invoke(state["messages"][-1].text)
    return {"messages": [chat_model().invoke([SystemMessage(join_texts(found)), *state["messages"]])]}


def test_a_command_that_brings_the_question(captured):
    graph = sequence(MessagesState, answer_messages, checkpointer=InMemorySaver())
    graph.invoke(user_says("The hose?"), captured.thread())
    captured.answers()
    graph.invoke(Command(update={"messages": [("user", QUESTION)]}, goto="answer_messages"), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_a_function_that_remembers_its_last_answer(captured):
    @entrypoint(checkpointer=InMemorySaver())
    def rag(question, *, previous=None):
        return answer_chain().invoke({"context": join_texts(TopicRetriever().invoke(question)), "question": question})

    rag.invoke(QUESTION, captured.thread())
    rag.invoke("And the hose?", captured.thread())

    assert captured.answers() == [ON_THE_PUMP, AND_THE_HOSE]


# Going on from a saved state


def approve(state: RagState):
    interrupt("Use these?")
    return {}


def test_another_process_resumes_the_graph(captured, new_captures):
    """All that is known there of question and documents stands in the saved state."""
    graph = sequence(RagState, retrieve_node, approve, answer_node, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    other = new_captures()
    graph.invoke(Command(resume="yes"), other.thread())

    assert captured.answer().status == "interrupted"
    assert other.answers() == [ON_THE_PUMP]


def test_another_process_resumes_an_agent_that_waits_inside_a_tool(captured, new_captures):
    @tool
    def ask_a_person(text: str) -> str:
        """Ask a person."""
        return interrupt(text)

    script = [calls(search("pump")), calls(("ask_a_person", {"text": "May I say so?"})), ANSWER]
    agent = create_agent(scripted_model(*script), [search_tool(), ask_a_person], checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread())
    other = new_captures()
    agent.invoke(Command(resume="yes"), other.thread())

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert other.answers() == [ON_THE_PUMP]


def test_an_earlier_state_that_is_gone_on_from(captured):
    graph = rag_graph(checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    captured.answers()
    (before_answer,) = [state for state in graph.get_state_history(captured.thread()) if state.next == ("answer_node",)]
    graph.invoke(None, captured.config | before_answer.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_state_that_was_changed_by_hand(captured):
    graph = rag_graph(checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    captured.answers()
    update = {"question": "And the hose?", "context": documents(HOSE)}
    changed = graph.update_state(captured.thread(), update, as_node="retrieve_node")
    graph.invoke(None, captured.config | changed)

    assert captured.answers() == [AND_THE_HOSE]
