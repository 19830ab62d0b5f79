"""The spans that another instrumentation made for the searches of an answer."""

from __future__ import annotations

import pytest
from agent_programs import calls, search, search_agent, user_says
from lc_captures import config_for
from rag_programs import (
    ANSWER,
    QUESTION,
    FailingRetriever,
    rag_chain,
)
from traced_application import ids

import ragspan

pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")  # OpenInference does, for the attributes of its spans


def test_a_search_knows_the_span_that_openinference_made_for_it(application, openinference):
    rag_chain().invoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [ids(application.span("FixedRetriever"))]


async def test_a_search_of_asynchronous_code_knows_its_span(application, openinference):
    await rag_chain().ainvoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [ids(application.span("FixedRetriever"))]


def test_each_of_several_searches_knows_its_own_span(application, openinference):
    search_agent(calls(search("pump"), search("filter")), ANSWER).invoke(
        user_says(QUESTION), config_for(application.engine)
    )

    spans = application.retrieval_spans()
    assert len(spans) == 2
    assert set(spans) == {ids(span) for span in application.spans("TopicRetriever")}


def test_a_search_that_fails_knows_its_span(application, openinference):
    with pytest.raises(ConnectionError):
        rag_chain(FailingRetriever()).invoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [ids(application.span("FailingRetriever"))]


def test_a_search_inside_a_capture_block_knows_its_span(application, openinference):
    with ragspan.capture(question=QUESTION, sink=application.engine) as answer:
        rag_chain().invoke(QUESTION, config_for(application.engine))
        answer.response = ANSWER

    assert application.retrieval_spans() == [ids(application.span("FixedRetriever"))]


def test_openinference_that_no_longer_instruments_is_not_asked(application, openinference, capsys):
    """It would print a complaint."""
    openinference.uninstrument()
    rag_chain().invoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [None]
    assert capsys.readouterr().out == ""
