"""An empty list is a search that found nothing where it is a search's; other empty lists say nothing of searches."""

from __future__ import annotations

import uuid
from typing import Any, TypedDict

import pytest
from agent_programs import agent_with, calls, rag_graph, scripted_model, search, search_agent, sequence, user_says
from captures import Answered, until
from langchain_core.language_models import FakeListLLM
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from lc_captures import all_but
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    answer_chain,
    chat_model,
    first_chunks,
    look_up,
    rag_chain,
    retriever,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@tool
def look_up_page(query: str) -> str:
    """Look something up."""
    return PUMP


SCRIPT = (calls(("look_up_page", {"query": "pump"})), ANSWER)


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_executors_empty_steps(captured, call):
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent

    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), MessagesPlaceholder("agent_scratchpad")])
    agent = create_tool_calling_agent(scripted_model(*SCRIPT), [look_up_page], prompt)
    executor = AgentExecutor(agent=agent, tools=[look_up_page])
    list(getattr(executor, call)({"input": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_an_agent_whose_tool_returns_text(captured):
    agent_with(look_up_page, script=SCRIPT).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def answers_beside(name, value):
    """A graph whose only node answers and writes another field."""

    def answer(state):
        return {"answer": chat_model().invoke(f"{PUMP}\n{state['question']}").text, name: value}

    return sequence(TypedDict("State", {"question": str, "answer": str, name: Any}, total=False), answer)


@pytest.mark.parametrize(
    "name",
    [
        "errors",
        "notes",
        "raw_notes",
        "plan",
        "past_steps",
        "intermediate_steps",
        "todos",
        "warnings",
        "search_queries",
        "document_errors",
        "validation_results",
        "messages_to_delete",
        "completedSections",
    ],
)
@pytest.mark.parametrize("empty", [[], ()], ids=["list", "tuple"])
def test_an_empty_field_that_is_about_something_else(captured, name, empty):
    answers_beside(name, empty).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


@pytest.mark.parametrize(
    "name",
    [
        "documents",
        "docs",
        "context",
        "contexts",
        "retrieved_docs",
        "relevantDocuments",
        "search_results",
        "results",
        "passages",
        "chunks",
        "hits",
        "found",
    ],
)
def test_an_empty_field_that_is_called_a_searchs_result(captured, name):
    answers_beside(name, []).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_step_that_is_given_a_text_and_finds_nothing(captured, call):
    program = {"context": RunnableLambda(lambda query: []) | str, "question": RunnablePassthrough()} | answer_chain()
    list(getattr(program, call)(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_a_step_that_is_given_texts_by_name_and_finds_nothing(captured):
    program = RunnablePassthrough.assign(context=lambda fields: []) | answer_chain()
    program.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


@pytest.mark.parametrize("model", [chat_model("[]"), FakeListLLM(responses=["[]"])], ids=["chat", "completion"])
def test_an_empty_list_that_a_model_said(captured, model):
    @chain
    def program(question):
        (model | JsonOutputParser()).invoke(f"List what is wrong with: {question}")
        return chat_model().invoke(f"{PUMP}\n{question}").text

    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Run ids that the caller gives, as LangServe does on every request


COMPLETE = Answered(QUESTION, FOUND, ANSWER)


@pytest.fixture(params=[uuid.uuid4, lambda: str(uuid.uuid4()), lambda: "request 17"], ids=["uuid", "text", "name"])
def config(captured, request):
    return captured.config | {"run_id": request.param()}


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_one_request_is_one_record(captured, config, call):
    list(getattr(rag_chain(), call)(QUESTION, config))

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronous_stream_is_one_record(captured, config):
    async for _ in rag_chain().astream(QUESTION, config):
        pass

    assert captured.answers() == [COMPLETE]


async def test_a_stream_that_its_reader_leaves_is_aborted(captured, config):
    await all_but(3, rag_chain().astream(QUESTION, config))
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


def test_an_agent_with_a_search_is_one_record(captured, config):
    search_agent(calls(search("pump")), ANSWER).invoke(user_says(QUESTION), config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_callbacks_that_are_passed_again_inside_join_the_request(captured, config):
    program = retriever() | (lambda found: rag_chain().invoke(QUESTION, captured.config))
    program.invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE]


def test_two_requests_with_the_same_id_are_two_records(captured, config):
    for _ in range(2):
        rag_chain().invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE] * 2


def test_a_graph_that_waits_and_goes_on(captured):
    def retrieve(state):
        found = look_up(state["question"])
        interrupt("Go on?")
        return {"context": found}

    graph = rag_graph(retrieve, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread() | {"run_id": str(uuid.uuid4())})
    graph.invoke(Command(resume="yes"), captured.thread() | {"run_id": str(uuid.uuid4())})

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.status) == (QUESTION, "interrupted")
    assert resumed == Answered(QUESTION, [PUMP], ANSWER)
