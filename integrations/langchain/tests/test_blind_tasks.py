"""Before Python 3.11 LangChain cannot tell asynchronous functions what is around them; a node of a graph has a task that can."""

import asyncio
import sys

import pytest
from agent_programs import RagState, sequence
from captures import Answered, CollectingSink
from rag_programs import ANSWER, PUMP, QUESTION, answer_chain, retriever

from ragspan_langchain import RagspanLangChainInstrumentor

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 11), reason="LangChain tells them there")


@pytest.fixture
def sink():
    instrumentor, sink = RagspanLangChainInstrumentor(), CollectingSink()
    instrumentor.instrument(sink=sink)
    yield sink
    instrumentor.uninstrument()


def answered(sink):
    return [Answered.of(record) for record in (capture.to_record() for capture in sink.take()) if record is not None]


async def find(state: RagState):
    return {"context": await retriever(PUMP).ainvoke(state["question"])}


async def answer(state: RagState):
    return {"answer": await answer_chain().ainvoke({"context": PUMP, "question": state["question"]})}


async def test_what_nodes_call_without_a_configuration_belongs_to_the_graph(sink):
    await sequence(RagState, find, answer).ainvoke({"question": QUESTION})

    assert answered(sink) == [Answered(QUESTION, [PUMP], ANSWER)]


async def test_graphs_at_the_same_time_and_calls_after_them(sink):
    graph = sequence(RagState, find, answer)
    await asyncio.gather(*(graph.ainvoke({"question": QUESTION}) for _ in range(3)))
    await answer_chain().ainvoke({"context": PUMP, "question": QUESTION})

    assert [each.contexts for each in answered(sink)] == [[PUMP], [PUMP], [PUMP], None]
