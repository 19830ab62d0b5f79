"""Documents that a model is given beside its messages."""

from __future__ import annotations

import pytest
from captures import Answered
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from rag_programs import ANSWER, FOUND, PUMP, QUESTION, chat_model, config_reaches_async_functions, documents, retriever

COMPLETE = Answered(QUESTION, FOUND, ANSWER)

FORMS = {
    "documents": lambda found: found,
    "texts": lambda found: [each.page_content for each in found],
    "text": lambda found: [{"text": each.page_content} for each in found],
    "snippet": lambda found: [{"id": each.id, "title": "t", "snippet": each.page_content} for each in found],
    "data": lambda found: [{"id": each.id, "data": {"text": each.page_content, "page": 3}} for each in found],
    "page_content": lambda found: [each.model_dump() for each in found],
    "tuple": tuple,
}


def in_the_message(found):
    return chat_model().invoke([HumanMessage(QUESTION, additional_kwargs={"documents": found})])


def in_the_call(found):
    return chat_model().invoke(QUESTION, documents=found)


def bound_to_the_model(found):
    return chat_model().bind(documents=found).invoke(QUESTION)


def streamed(found):
    return list(chat_model().stream(QUESTION, documents=found))[-1]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("ask", [in_the_message, in_the_call, bound_to_the_model])
def test_documents_of_any_form_reach_the_prompt(captured, ask, form):
    (retriever() | RunnableLambda(lambda found: ask(form(found)).text)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_documents_of_a_streamed_call(captured):
    (retriever() | RunnableLambda(lambda found: (streamed(found), ANSWER)[1])).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


@config_reaches_async_functions
async def test_documents_of_an_asynchronous_call(captured):
    async def ask(found):
        return (await chat_model().ainvoke(QUESTION, documents=found)).text

    await (retriever() | RunnableLambda(ask)).ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_only_documents_that_were_handed_over_count(captured):
    (retriever() | RunnableLambda(lambda found: in_the_call(found[1:]).text)).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND[1:], ANSWER)]


def test_documents_that_no_search_has_shown(captured):
    """The function asks the store itself; the call of the model is the first to show what it found."""
    RunnableLambda(lambda question: in_the_call(documents(PUMP)).text).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_documents_in_a_message_that_no_search_has_shown(captured):
    RunnableLambda(lambda question: in_the_message([Document(PUMP)]).text).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]
