"""What a capture says of its size, by which the engine's queue is bounded."""

from __future__ import annotations

from typing import TypedDict

import pytest
from agent_programs import sequence
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_programs import QUESTION, StreamingModel, chat_model, rag_chain

LARGE = "page " * 20_000  # 100,000 characters


def size_of(captured):
    return captured.sink.take()[-1].size_hint


PROGRAMS = {
    "input": RunnableLambda(lambda given: "Good day!"),
    "output": RunnableLambda(lambda given: LARGE),
    "output in a field": RunnableLambda(lambda given: {"answer": {"parts": [LARGE]}}),
    "output in a message": RunnableLambda(lambda given: {"messages": [AIMessage(LARGE)]}),
    "output in a call": RunnableLambda(
        lambda given: AIMessage("", tool_calls=[{"name": "a", "args": {"text": LARGE}, "id": "1"}])
    ),
    "prompt": RunnableLambda(lambda given: chat_model().invoke(LARGE).text),
    "reply": RunnableLambda(lambda given: chat_model(LARGE).invoke("Write.").text[:10]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_large_texts_count_wherever_they_are(captured, name):
    given = {"question": QUESTION, "text": LARGE} if name == "input" else QUESTION
    PROGRAMS[name].invoke(given, captured.config)

    assert 100_000 < size_of(captured) < 250_000


def test_a_small_request_is_small(captured):
    rag_chain().invoke(QUESTION, captured.config)

    assert size_of(captured) < 5000


def test_the_tokens_of_a_stream_count_each_as_a_text_of_its_own(captured):
    list(rag_chain(model=StreamingModel(tokens=["word "] * 2000)).stream(QUESTION, captured.config))

    assert size_of(captured) > 2000 * 50


def test_saved_states_of_a_graph_that_goes_on_count(captured):
    class State(TypedDict, total=False):
        text: str

    def ask(state: State):
        interrupt("Go on?")
        return {"text": "done"}

    graph = sequence(State, ask, checkpointer=InMemorySaver())
    graph.invoke({"text": LARGE}, captured.thread("large"))
    captured.sink.take()
    graph.invoke(Command(resume="yes"), captured.thread("large"))

    assert size_of(captured) > 100_000
