"""Requests that fail, and programs that recover."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from captures import Answered
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_programs import (
    ANSWER,
    FOUND,
    PROMPT,
    QUESTION,
    BrokenModel,
    FailingRetriever,
    StreamingModel,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


def die(text):
    if text == "runs ":
        raise ConnectionResetError


def dying():
    return rag_chain(model=StreamingModel(tokens=["It ", "runs ", "for ", "three ", "years."], then=die))


def parsed():
    return {"context": retriever() | join_texts, "question": RunnablePassthrough()} | PROMPT | chat_model()


async def read(stream):
    return [chunk async for chunk in stream]


FAILURES = {
    "retriever": (lambda *asked: rag_chain(FailingRetriever()).invoke(*asked), [], None, "ConnectionError"),
    "retriever in a stream": (
        lambda *asked: list(rag_chain(FailingRetriever()).stream(*asked)),
        [],
        None,
        "ConnectionError",
    ),
    "model": (lambda *asked: rag_chain(model=BrokenModel()).invoke(*asked), FOUND, None, "RuntimeError"),
    "model in a stream": (lambda *asked: list(dying().stream(*asked)), FOUND, "It runs ", "ConnectionResetError"),
    "model in an asynchronous stream": (
        lambda *asked: asyncio.run(read(dying().astream(*asked))),
        FOUND,
        "It runs ",
        "ConnectionResetError",
    ),
    # The caller does not get the answer then. In a stream the function takes all of it before it returns.
    "later step": (
        lambda *asked: (rag_chain() | (lambda answer: 1 / 0)).invoke(*asked),
        FOUND,
        None,
        "ZeroDivisionError",
    ),
    "later step in a stream": (
        lambda *asked: list((rag_chain() | (lambda answer: 1 / 0)).stream(*asked)),
        FOUND,
        None,
        "ZeroDivisionError",
    ),
    "parser": (lambda *asked: (parsed() | JsonOutputParser()).invoke(*asked), FOUND, None, "OutputParserException"),
}


@pytest.mark.parametrize(("ask", "contexts", "received", "error"), FAILURES.values(), ids=FAILURES)
def test_a_part_that_fails(captured, ask, contexts, received, error):
    with contextlib.suppress(Exception):
        ask(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, contexts, received, "error", error)]


def test_a_model_that_fails_twice_before_a_fallback_answers(captured):
    model = (
        BrokenModel()
        .with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        .with_fallbacks([chat_model("The fallback says three years.")])
    )
    rag_chain(model=model).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, "The fallback says three years.")]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_fallback_for_the_whole_chain(captured, call):
    program = rag_chain(model=BrokenModel()).with_fallbacks([rag_chain()])
    result = getattr(program, call)(QUESTION, captured.config)

    assert "".join(result) == ANSWER
    assert captured.answers() == [COMPLETE]


def test_a_retriever_that_fails_before_another_one_finds(captured):
    rag_chain(FailingRetriever().with_fallbacks([retriever()])).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_an_error_that_the_program_answers_itself_is_complete(captured):
    def answer(question):
        try:
            return rag_chain(model=BrokenModel()).invoke(question)
        except RuntimeError:
            return "The manual is closed."

    RunnableLambda(answer).invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "The manual is closed.", "complete")
