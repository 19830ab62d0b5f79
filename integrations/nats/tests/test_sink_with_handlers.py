"""Real chains whose handlers publish their answers: handed the sink, or by `RAGSPAN_SINK` alone."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from opentelemetry.sdk.trace import TracerProvider
from submitted import stored_records
from waiting import PATIENCE

import ragspan
from ragspan import defaults
from ragspan.process import in_use
from ragspan_langchain import RagspanCallbackHandler
from ragspan_nats import NatsSink

PASSAGES = ["The office is in Bern.", "It opens at nine."]
ANSWER = "In Bern."


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(text, metadata={"page": page}) for page, text in enumerate(PASSAGES)]


def chain(times=1):
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)] * times))
    context = Archive() | (lambda found: "\n\n".join(document.page_content for document in found))
    return {"context": context, "question": RunnablePassthrough()} | prompt | model


@pytest.fixture
def published_by_default(broker, monkeypatch):
    """`RAGSPAN_SINK` names the broker; the sink that comes of it is shut down."""
    monkeypatch.setattr(in_use, "sink", None)
    monkeypatch.setenv("RAGSPAN_SINK", broker.url)
    yield broker
    if in_use.sink is not None:
        in_use.sink.shutdown(1)


def test_an_answer_of_a_chain_is_published(broker, make_sink):
    sink = make_sink(broker)
    handler = RagspanCallbackHandler(sink=sink)
    with TracerProvider().get_tracer("application").start_as_current_span("GET /answer") as span:
        chain().invoke("Where is the office?", config={"callbacks": [handler]})
    assert sink.flush(PATIENCE)

    (record,) = stored_records(broker)
    assert record.question == "Where is the office?"
    assert [context.text for context in record.contexts] == PASSAGES
    assert record.response == ANSWER
    assert record.status == "complete"
    assert record.framework == "langchain"
    assert record.parent.trace_id == span.get_span_context().trace_id
    assert sink.stats().errors == {}


def test_a_variable_is_enough(published_by_default, monkeypatch):
    monkeypatch.setenv("RAGSPAN_NATS_STREAM", "answers")
    chain().invoke("Where?", config={"callbacks": [RagspanCallbackHandler()]})
    with ragspan.capture(question="By hand?") as answer:
        answer.contexts, answer.response = PASSAGES, ANSWER

    sink = defaults.default_sink()
    assert isinstance(sink, NatsSink)
    assert sink.flush(PATIENCE)
    assert [record.question for record in stored_records(published_by_default, "answers")] == ["Where?", "By hand?"]
