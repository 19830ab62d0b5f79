"""LangChain and LlamaIndex in one request: the outer one makes the record, with what the inner one saw."""

from __future__ import annotations

import pytest
from agent_programs import calls, scripted_model, user_says
from captures import CollectingSink
from langchain.agents import create_agent
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from rag_programs import chat_model, retriever

import ragspan

llama_index = pytest.importorskip("ragspan_llama_index")

from llama_index.core import get_response_synthesizer  # noqa: E402  only where it is installed
from llama_index.core.llms.mock import MockLLM  # noqa: E402
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine  # noqa: E402
from llama_index.core.retrievers import BaseRetriever  # noqa: E402
from llama_index.core.schema import NodeWithScore, TextNode  # noqa: E402

ASKED = "What warranty does the pump carry?"
ANSWER = "It carries three years of it."
PUMP = "The pump carries a warranty of three years from the day on which it was sold."
HOSE = "The hose is two metres long and made of a rubber that does not age."
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Be brief and kind to everybody.\n{context}"), ("human", "{question}")]
)


class Shelf(BaseRetriever):
    def _retrieve(self, query):
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in (PUMP, HOSE)]


@pytest.fixture
def both(new_captures):
    """Handlers of both frameworks, for one sink."""
    sink = CollectingSink()
    handler = llama_index.RagspanCallbackHandler(sink=sink)
    yield new_captures(sink)
    handler.detach()


def only(captured):
    record = captured.record()
    return record, None if record.contexts is None else [context.text for context in record.contexts]


def answers_with(captured, *tools):
    model = scripted_model(calls((tools[0].name, {"query": "warranty"})), ANSWER)
    create_agent(model, tools=list(tools)).invoke(user_says(ASKED), config=captured.config)


def engine():
    return RetrieverQueryEngine(Shelf(), get_response_synthesizer(llm=MockLLM(max_tokens=20)))


# LlamaIndex inside


def test_an_engine_as_a_tool_of_an_agent(both):
    @tool
    def ask(query: str) -> str:
        """Ask the library."""
        return str(engine().query(query))

    answers_with(both, ask)

    record, contexts = only(both)
    assert (record.framework, record.question, record.response, contexts) == ("langchain", ASKED, ANSWER, [PUMP, HOSE])


def test_what_happens_inside_a_block_around_both(both):
    @tool
    def find(query: str) -> str:
        """Search the library."""
        return Shelf().retrieve(query)[1].text

    with ragspan.capture(question=ASKED, sink=both.sink):
        answers_with(both, find)

    assert only(both)[1] == [HOSE]


def test_another_sinks_handler_makes_its_own_record(new_captures):
    sink = CollectingSink()
    handler = llama_index.RagspanCallbackHandler(sink=sink)

    @tool
    def ask(query: str) -> str:
        """Ask the library."""
        return str(engine().query(query))

    try:
        answers_with(captured := new_captures(), ask)
    finally:
        handler.detach()

    assert (only(captured)[1], len(sink.take())) == (None, 1)


# LangChain inside


class ByHand(CustomQueryEngine):
    """Answers with what a function of the question returns."""

    answer: object

    def custom_query(self, query_str):
        return self.answer(query_str)


def test_a_chain_in_an_engine(both):
    chain = (
        {
            "context": retriever(PUMP) | RunnableLambda(lambda found: found[0].page_content),
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat_model(ANSWER)
        | StrOutputParser()
    )
    ByHand(answer=lambda query: chain.invoke(query, config=both.config)).query(ASKED)

    record, contexts = only(both)
    assert (record.framework, record.question, record.response, contexts) == ("llama_index", ASKED, ANSWER, [PUMP])
