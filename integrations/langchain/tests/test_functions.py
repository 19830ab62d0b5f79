"""Plain functions in chains, and how runs find the request that they belong to."""

from __future__ import annotations

import langsmith
import pytest
from captures import Answered
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    answer_chain,
    chat_model,
    join_texts,
    look_up,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


class OfflineClient(langsmith.Client):
    """LangSmith without its network."""

    def create_run(self, *args, **kwargs):
        pass

    def update_run(self, *args, **kwargs):
        pass


@pytest.fixture
def langsmith_tracing():
    """Functions decorated with LangSmith's `traceable` make runs that handlers never see."""
    client = OfflineClient(api_url="http://localhost:9", api_key="none", auto_batch_tracing=False)
    with langsmith.tracing_context(enabled=True, client=client):
        yield


def answer_from(found, question):
    return answer_chain().invoke({"context": join_texts(found), "question": question})


# Calls inside functions


def test_a_step_that_returns_documents_with_scores(captured):
    def with_scores(question):
        return [(document, 0.25) for document in look_up(question)]

    program = rag_chain(RunnableLambda(with_scores), formatter=lambda pairs: join_texts(found for found, _ in pairs))
    program.invoke(QUESTION, captured.config)

    record = captured.record()
    assert Answered.of(record) == ON_THE_PUMP
    assert [context.score for context in record.contexts] == [0.25]


def test_passages_of_a_class_of_the_programs_own_are_not_observable(captured):
    class Passage:
        text = PUMP

    program = rag_chain(RunnableLambda(lambda question: [Passage()]), formatter=lambda found: found[0].text)
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Functions that stream


def test_a_generator_step_that_rewrites_the_words_of_the_stream(captured):
    """What the reader gets counts, not what the model said."""

    def shout(texts):
        for text in texts:
            yield text.upper()

    program = rag_chain() | shout
    assert "".join(program.stream(QUESTION, captured.config)) == ANSWER.upper()
    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER.upper())]


# Branches


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_router_that_classifies_the_question_first(captured, call):
    """The classifying model's word is not the answer, and its prompt holds no document."""
    routes = {"manual": rag_chain(), "chat": chat_model("Let us talk.")}
    program = RunnablePassthrough.assign(
        route=lambda fields: chat_model("manual").invoke(f"Classify: {fields['question']}").text
    ) | RunnableLambda(lambda fields: routes[fields["route"]].invoke(fields["question"]))
    list(getattr(program, call)({"question": QUESTION}, captured.config))

    assert captured.answers() == [COMPLETE]


# One request, one record


def test_a_function_of_another_tracer_inside_the_chain(captured, langsmith_tracing):
    """The search's parent is a run of LangSmith's that the handler never sees; it is still the same request."""

    @langsmith.traceable
    def find(question):
        return retriever().invoke(question, captured.config)

    @chain
    def rag(question):
        return answer_from(find(question), question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]
