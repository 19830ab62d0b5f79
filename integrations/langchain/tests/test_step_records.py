"""What a record says of an answer's steps: tools, messages, rerankers, errors."""

from __future__ import annotations

import pytest
from agent_programs import agent_with, calls, search, search_agent, sequence, user_says
from fakes import FakeJudge
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import MessagesState
from langgraph.prebuilt import ToolNode
from lc_captures import ChainCaptures
from rag_programs import (
    ANSWER,
    PROMPT,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    rag_chain,
)

from ragspan.messages import Message
from ragspan.metrics import Faithfulness


@tool
def add(first: int, second: int) -> int:
    """Adds two numbers."""
    return first + second


@tool
def breaks(what: str) -> str:
    """Is out of order."""
    raise TimeoutError(f"no answer about {what}")


@pytest.fixture
def captured():
    return ChainCaptures()


def test_a_tool_that_a_model_calls_is_a_step(captured):
    agent_with(add, script=[calls(("add", {"first": 1, "second": 2})), "Three."]).invoke(
        user_says("1 + 2?"), captured.config
    )

    record = captured.record()
    (call,) = record.tool_calls
    (request,) = record.generations[0].reply.tool_requests
    assert (call.name, call.result, call.error_type, call.within) == ("add", "3", None, None)
    assert call.call_id == request.id
    assert record.generations[0].ended_ns <= call.started_ns <= call.ended_ns <= record.generations[1].started_ns


def test_a_tool_that_hands_on_what_it_finds_is_the_search(captured):
    search_agent(calls(search("pump")), ANSWER).invoke(user_says(QUESTION), captured.config)

    record = captured.record()
    (found,) = record.retrievals
    assert (found.name, found.tool_name) == ("TopicRetriever", "search_manual")
    assert found.tool_call_id == record.generations[0].reply.tool_requests[0].id


def test_a_graph_whose_model_calls_tools_is_an_agent(captured):
    def ask(state: MessagesState):
        return {"messages": [calls(("add", {"first": 1, "second": 2}))]}

    sequence(MessagesState, ask, ToolNode([add], name="tools")).invoke(user_says("1 + 2?"), captured.config)
    (record,) = captured.records()

    assert record.is_agent


def test_prompt_and_reply_of_each_call_are_kept_message_by_message(captured):
    search_agent(calls(search("pump")), ANSWER, system_prompt="Be brief.").invoke(user_says(QUESTION), captured.config)

    first, second = captured.record().generations
    assert [(one.role, one.text) for one in first.prompt] == [("system", "Be brief."), ("user", QUESTION)]
    assert second.prompt[3].tool_call_id == first.reply.tool_requests[0].id
    assert second.reply == Message(role="assistant", text=ANSWER)


def test_what_the_provider_tells_of_a_reply_is_kept(captured):
    reply = AIMessage(
        ANSWER,
        additional_kwargs={"output": [{"type": "web_search_call"}]},
        response_metadata={"id": "chatcmpl-1", "model_name": "small-2026-11", "finish_reason": "stop"},
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 3,
            "total_tokens": 13,
            "input_token_details": {"cache_read": 8},
        },
    )
    chain = PROMPT | GenericFakeChatModel(messages=iter([reply]))
    chain.invoke({"question": QUESTION, "context": PUMP}, captured.config)

    record = captured.record()
    (model,) = record.generations
    assert (model.response_id, model.response_model, model.cached_tokens) == ("chatcmpl-1", "small-2026-11", 8)
    assert record.contexts_unknown == "provider_search"


def test_a_search_that_reranks_another_ones_documents_says_so(captured):
    class Reverses(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return [
                Document(each.page_content, id=each.id, metadata={"relevance_score": 0.9 - place / 10})
                for place, each in enumerate(reversed(documents))
            ]

    compression = pytest.importorskip("langchain_classic.retrievers").ContextualCompressionRetriever
    rag_chain(compression(base_compressor=Reverses(), base_retriever=TopicRetriever())).invoke(
        "pump or motor?", captured.config
    )

    (reranking,) = captured.record().rerankings
    assert [(document.id, document.score) for document in reranking.contexts] == [("doc-1", 0.9), ("doc-0", 0.8)]


async def test_the_document_that_a_program_left_out_of_the_prompt_is_named(captured):
    source = TopicRetriever() | RunnableLambda(lambda documents: documents[1:])
    rag_chain(source, chat_model(PUMP)).invoke("pump or motor?", captured.config)

    score = await Faithfulness(FakeJudge(supported=[False])).score(captured.record())
    assert score.losses == (
        "Document 1 of TopicRetriever, which did not reach the prompt, supports a claim that the contexts do not."
    )


def test_what_an_error_said_is_kept(captured):
    agent = agent_with(breaks, script=[calls(("breaks", {"what": "pumps in Zürich"})), ANSWER])
    with pytest.raises(TimeoutError):
        agent.invoke(user_says(QUESTION), captured.config)

    record = captured.record()
    for error in (record.error, record.tool_calls[0].error):
        assert (error.type, error.message) == ("TimeoutError", "no answer about pumps in Zürich")
