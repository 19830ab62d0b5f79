"""Agents that search with tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_programs import agent_with, calls, search, search_agent, user_says
from captures import Answered
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import create_retriever_tool, tool
from langgraph.types import Command
from lc_captures import answers
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    documents,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)
LOOK_UP = ("look_up_page", {"query": "pump"})


def looking_up_with(look_up_page):
    """An agent that calls this tool once."""
    return agent_with(look_up_page, script=[calls(LOOK_UP), ANSWER])


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_agent_that_searches_with_words_of_its_own(captured, call):
    agent = search_agent(calls(search("pump term of warranty")), ANSWER)
    list(getattr(agent, call)(user_says(QUESTION), captured.config))

    assert captured.answers() == [ON_THE_PUMP]


def test_several_searches_count_in_the_order_of_the_prompt(captured):
    """Two searches at the same time and a third one later; a document that comes again counts once."""
    agent = search_agent(calls(search("motor"), search("pump")), calls(search("pump hose")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP, HOSE], ANSWER)]


@pytest.mark.parametrize(("script", "contexts"), [([], None), ([calls(search("weather"))], [])])
def test_an_agent_that_does_not_search_or_finds_nothing(captured, script, contexts):
    """Without a search no callback shows a document or an empty search result."""
    search_agent(*script, "I do not know.").invoke(user_says("What of the weather?"), captured.config)

    assert captured.answers() == [Answered("What of the weather?", contexts, "I do not know.")]


def test_a_retriever_tool_that_returns_text_only(captured):
    """The retriever inside the tool is observed all the same."""
    plain = create_retriever_tool(TopicRetriever(), "search_manual", "Search the manual.")
    agent_with(plain, script=[calls(search("pump")), ANSWER]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Tools of the program's own


def test_a_tool_that_returns_text_only_shows_no_document(captured):
    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        return join_texts(look_up(query))

    looking_up_with(look_up_page).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_tool_with_an_empty_artifact(captured):
    @tool(response_format="content_and_artifact")
    def look_up_page(query: str) -> tuple[str, list[Document]]:
        """Look something up."""
        return "Nothing was found.", []

    looking_up_with(look_up_page).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


@pytest.mark.parametrize(
    "artifact",
    [
        lambda found: {"documents": found, "seconds": 0.2},
        lambda found: [(page, 0.5) for page in found],
        lambda found: [page.model_dump() for page in found],
        lambda found: found[0],
        tuple,
    ],
    ids=["field", "scores", "dictionaries", "one document", "tuple"],
)
def test_documents_in_an_artifact_of_another_form(captured, artifact):
    @tool(response_format="content_and_artifact")
    def look_up_page(query: str) -> tuple[str, Any]:
        """Look something up."""
        found = look_up(query)
        return join_texts(found), artifact(found)

    looking_up_with(look_up_page).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


@tool
def find_pages(query: str) -> list[Document]:
    """Find pages."""
    return look_up(query)


@answers(Answered(QUESTION, [MOTOR, PUMP], ANSWER))
def test_a_tool_whose_documents_a_function_uses(question):
    return chat_model().invoke(f"{join_texts(find_pages.invoke({'query': 'motor pump'}))}\n\n{question}").text


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


def test_a_tool_that_asks_a_model_about_what_it_found(captured):
    """The agent sees only the inner model's words; the documents stand behind them."""

    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        found = TopicRetriever().invoke(query)
        return chat_model("The manual grants three years.").invoke(f"Sum up: {join_texts(found)}").text

    looking_up_with(look_up_page).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Structured answers


class Warranty(BaseModel):
    years: int
    pages: list[int]


def test_an_agent_that_answers_with_an_object(captured):
    final = calls(("Warranty", {"years": 3, "pages": [1]}))
    agent = search_agent(calls(search("pump")), final, response_format=ToolStrategy(Warranty))
    agent.invoke(user_says(QUESTION), captured.config)

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (QUESTION, [PUMP])
    assert json.loads(answer.response) == {"years": 3, "pages": [1]}


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
