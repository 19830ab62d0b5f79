"""Records of long requests, and of documents that are made to be expensive: right, or known not to be."""

import json

import pytest
from agent_programs import agent_with, user_says
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from rag_programs import ANSWER, PUMP, QUESTION, rag_chain, retriever, texts_of

SEARCHES = 12


def found_by(number):
    return [
        f"Section {number}.{place}: part {number * 37 + place} belongs to assembly {place * 91}." for place in range(5)
    ]


def talking_agent(write):
    """It writes a sentence before each search."""

    @tool(response_format="content_and_artifact")
    def find(number: int):
        """Find."""
        return write(found_by(number)), [Document(text) for text in found_by(number)]

    script = [
        AIMessage(
            f"Step {number}: I look there.",
            tool_calls=[{"name": "find", "args": {"number": number}, "id": str(number)}],
        )
        for number in range(SEARCHES)
    ]
    return agent_with(find, script=[*script, ANSWER])


@pytest.mark.parametrize(
    "write", ["\n".join, json.dumps, lambda texts: "\n".join(reversed(texts))], ids=["joined", "json", "reversed"]
)
def test_every_document_of_an_agent_that_talks_while_it_searches_counts(captured, write):
    talking_agent(write).invoke(user_says(QUESTION), {**captured.config, "recursion_limit": 100})

    (answer,) = captured.answers()

    assert sorted(answer.contexts) == sorted(text for number in range(SEARCHES) for text in found_by(number))


def test_a_document_of_combining_marks_leaves_the_others_contexts(captured):
    marks = "Zalgo: e" + "\u0301\u0316" * 50_000
    program = rag_chain(retriever(marks, PUMP), formatter=lambda found: "\n\n".join(t[:500] for t in texts_of(found)))
    program.invoke(QUESTION, captured.config)

    assert PUMP in captured.answer().contexts


def test_a_number_of_thousands_of_digits_costs_no_record(captured):
    digits = "see &#" + "9" * 5000 + "; there"
    program = rag_chain(retriever(digits, PUMP), formatter=lambda found: "\n\n".join(t[:500] for t in texts_of(found)))
    program.invoke(QUESTION, captured.config)

    assert captured.answer().contexts == [digits, PUMP]


def test_contexts_are_not_known_where_it_would_take_too_long_to_look_for_them(captured):
    texts = [f"{'a ' * 300}b{number}" for number in range(300)]
    rag_chain(retriever(*texts), formatter=lambda _: "a " * 60_000).invoke(QUESTION, captured.config)

    assert captured.answer().contexts is None
