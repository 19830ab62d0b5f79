"""Requests that fail, and programs that recover."""

from __future__ import annotations

import contextlib

import pytest
from captures import Answered
from langchain_core.exceptions import OutputParserException
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


def test_a_retriever_that_raises(captured):
    with contextlib.suppress(ConnectionError):
        rag_chain(FailingRetriever()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], None, "error", "ConnectionError")]


def test_a_retriever_that_raises_in_a_stream(captured):
    with contextlib.suppress(ConnectionError):
        list(rag_chain(FailingRetriever()).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, [], None, "error", "ConnectionError")]


def test_a_model_that_raises(captured):
    with contextlib.suppress(RuntimeError):
        rag_chain(model=BrokenModel()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "error", "RuntimeError")]


def test_a_model_that_dies_in_the_middle_of_a_stream(captured):
    def die(text):
        if text == "runs ":
            raise ConnectionResetError

    model = StreamingModel(tokens=["It ", "runs ", "for ", "three ", "years."], then=die)
    with contextlib.suppress(ConnectionResetError):
        list(rag_chain(model=model).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, "It runs ", "error", "ConnectionResetError")]


async def test_a_model_that_dies_in_the_middle_of_an_asynchronous_stream(captured):
    def die(text):
        if text == "runs ":
            raise ConnectionResetError

    model = StreamingModel(tokens=["It ", "runs ", "for ", "three ", "years."], then=die)
    with contextlib.suppress(ConnectionResetError):
        async for _ in rag_chain(model=model).astream(QUESTION, captured.config):
            pass

    assert captured.answers() == [Answered(QUESTION, FOUND, "It runs ", "error", "ConnectionResetError")]


def test_a_later_step_that_raises_keeps_the_answer_from_the_caller(captured):
    with contextlib.suppress(ZeroDivisionError):
        (rag_chain() | (lambda answer: 1 / 0)).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "error", "ZeroDivisionError")]


def test_a_later_step_that_raises_before_it_has_streamed_anything(captured):
    """The function takes the whole answer before it returns, so not a token reaches the reader."""
    with contextlib.suppress(ZeroDivisionError):
        list((rag_chain() | (lambda answer: 1 / 0)).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "error", "ZeroDivisionError")]


def test_an_answer_that_cannot_be_parsed(captured):
    program = {"context": retriever() | join_texts, "question": RunnablePassthrough()} | PROMPT | chat_model()
    with contextlib.suppress(OutputParserException):
        (program | JsonOutputParser()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "error", "OutputParserException")]


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
