"""An empty list is a search that found nothing where it is a search's; other empty lists say nothing of searches."""

from __future__ import annotations

import uuid
from typing import Any, TypedDict

import pytest
from agent_programs import calls, scripted_model, sequence
from captures import Answered
from langchain_core.language_models import FakeListLLM
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import tool
from rag_programs import ANSWER, FOUND, PUMP, QUESTION, answer_chain, chat_model, rag_chain, retriever

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


def test_callbacks_that_are_passed_again_inside_join_the_request(captured, config):
    program = retriever() | (lambda found: rag_chain().invoke(QUESTION, captured.config))
    program.invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE]


def test_two_requests_with_the_same_id_are_two_records(captured, config):
    for _ in range(2):
        rag_chain().invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE] * 2
