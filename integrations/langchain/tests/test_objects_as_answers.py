"""Answers that are objects: tool calls that the caller reads, and deep or large JSON."""

from __future__ import annotations

import json

import pytest
from agent_programs import calls, scripted_model
from captures import Answered
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from rag_programs import ANSWER, FOUND, PROMPT, QUESTION, chat_model, join_texts, rag_chain, retriever

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
PREPARED = {"context": retriever() | join_texts, "question": RunnablePassthrough()}
STRUCTURED = {"years": 3, "reason": "It says so on page one."}
CITED = {"answer": ANSWER, "citations": [0]}
CITING = AIMessage("", tool_calls=calls(("cited_answer", CITED)).tool_calls)


def structured_answer(captured):
    """The answer to `QUESTION` from the three documents, read as JSON."""
    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "complete")
    return json.loads(answer.response)


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_message_that_answers_by_a_tool_call(captured, call):
    list(getattr(PREPARED | PROMPT | scripted_model(CITING), call)(QUESTION, captured.config))

    assert structured_answer(captured) == CITED


@pytest.mark.parametrize("name", ["answer", "message", "cited"])
def test_a_message_with_a_tool_call_beside_documents(captured, name):
    program = RunnableParallel(**{name: PREPARED | PROMPT | scripted_model(CITING), "docs": retriever()})
    program.invoke(QUESTION, captured.config)

    assert structured_answer(captured) == CITED


def test_a_conversation_that_ends_with_a_tool_call(captured):
    (PREPARED | PROMPT | scripted_model(CITING) | (lambda message: {"messages": [message]})).invoke(
        QUESTION, captured.config
    )

    assert structured_answer(captured) == CITED


def test_tool_calls_that_the_caller_gets_without_their_message(captured):
    (PREPARED | PROMPT | scripted_model(CITING) | (lambda message: message.tool_calls)).invoke(
        QUESTION, captured.config
    )

    assert structured_answer(captured) == [CITED]


def test_two_tool_calls_are_a_list(captured):
    both = calls(("cited_answer", CITED), ("cited_answer", STRUCTURED))
    (PREPARED | PROMPT | scripted_model(both)).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == [CITED, STRUCTURED]


def test_a_text_beside_a_tool_call_is_the_answer(captured):
    message = AIMessage(ANSWER, tool_calls=CITING.tool_calls)
    (PREPARED | PROMPT | scripted_model(message)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_draft_by_a_tool_call_that_another_model_comments_on(captured):
    """The documents are those of the call that answered, not of the one that spoke last."""

    def comment(message):
        chat_model("Nice.").invoke("Comment.")
        return message

    (PREPARED | PROMPT | scripted_model(CITING) | comment).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == CITED


def nested(depth):
    return {"years": 3} if depth == 0 else {"part": [nested(depth - 1)]}


@pytest.mark.parametrize("depth", [2, 4, 10, 20])
@pytest.mark.parametrize("form", [lambda said: said, lambda said: {"answer": said}, lambda said: {"answer": (said,)}])
def test_a_deep_object_is_whole(captured, depth, form):
    said = chat_model(json.dumps(nested(depth)))
    (PREPARED | PROMPT | said | JsonOutputParser() | form).invoke(QUESTION, captured.config)

    response = captured.answer().response
    assert response.count('"part"') == depth
    assert '{"years": 3}' in response


def test_what_is_too_large_says_that_something_is_missing(captured):
    rows = [{"row": [number]} for number in range(5000)]
    (rag_chain() | (lambda text: {"answer": rows})).invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert "…" in json.loads(answer.response)
    assert len(answer.response) < 20_000
