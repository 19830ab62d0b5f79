"""What the handler must not do to a program: read its iterators, cost it time, touch its context, fail in it."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import threading
import time
from typing import Any

import pytest
from captures import Answered, Captures, CollectingSink
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, chain
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    FixedRetriever,
    answer_chain,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
    texts_of,
    token,
)

from ragspan_langchain import RagspanCallbackHandler

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# The program's own objects


def test_a_generator_of_documents_is_not_read(captured):
    read = []

    def read_and_join(found):
        read.extend(found)
        return join_texts(read)

    source = FixedRetriever(result=lambda: (document for document in documents(*FOUND)))
    rag_chain(source, formatter=read_and_join).invoke(QUESTION, captured.config)

    assert texts_of(read) == FOUND
    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_generator_in_the_input_is_not_read(captured):
    rows = iter(["one", "two"])
    program = RunnableLambda(lambda fields: ", ".join(fields["rows"]))

    assert program.invoke({"question": QUESTION, "rows": rows}, captured.config) == "one, two"
    assert captured.answers() == [Answered(QUESTION, [], "one, two")]


def test_metadata_that_cannot_be_copied(captured):
    class Client:
        def __deepcopy__(self, memo):
            raise TypeError("cannot be copied")

        def __reduce__(self):
            raise TypeError("cannot be pickled")

    metadata = {"lock": threading.Lock(), "client": Client(), "rows": iter(range(3)), "page": 4}
    found = [Document(page_content=PUMP, metadata=metadata)]
    rag_chain(FixedRetriever(result=found)).invoke(QUESTION, captured.config)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [PUMP], ANSWER)
    assert record.contexts[0].metadata == {"page": 4}
    assert list(metadata["rows"]) == [0, 1, 2]


def test_what_the_program_changes_after_the_answer(captured):
    """The record is made later, and holds what was true during the request."""
    found = documents(*FOUND)

    @chain
    def rag(inputs):
        question = inputs["messages"][-1].text
        context = join_texts(FixedRetriever(result=found).invoke(question))
        return {"answer": answer_chain().invoke({"context": context, "question": question}), "sources": found}

    inputs = {"messages": [HumanMessage(QUESTION)]}
    result = rag.invoke(inputs, captured.config)
    result["answer"] = "changed"
    inputs["messages"][0].content = "changed"
    inputs["messages"].append(HumanMessage("another question"))
    for document in found:
        document.page_content = "changed"
        document.metadata["page"] = "changed"
    found.clear()

    record = captured.record()
    assert Answered.of(record) == COMPLETE
    assert [context.metadata["page"] for context in record.contexts] == [0, 1, 2]


def test_the_same_document_object_in_every_answer(captured):
    """Some retrievers return the very documents that they keep; one request's changes are that request's."""
    kept = documents(PUMP)

    def shout(found):
        found[0].page_content = found[0].page_content.upper()
        return join_texts(found)

    rag_chain(FixedRetriever(result=kept)).invoke(QUESTION, captured.config)
    rag_chain(FixedRetriever(result=kept), formatter=shout).invoke(QUESTION, captured.config)

    assert [answer.contexts for answer in captured.answers()] == [[PUMP], [PUMP.upper()]]


@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy support:DeprecationWarning")  # of the fake model
def test_a_copied_chain_reports_to_the_same_handler(captured):
    program = rag_chain().with_config(captured.config)
    copy.deepcopy(program).invoke(QUESTION)
    copy.copy(program).invoke(QUESTION)
    rag_chain().invoke(QUESTION, {"callbacks": [copy.copy(captured.handler)]})

    assert captured.answers() == [COMPLETE] * 3


# Strange payloads


class Strange:
    """Refuses whatever is asked of it."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __bool__(self):
        raise RuntimeError("no truth value")

    def __len__(self):
        raise RuntimeError("no length")

    def __iter__(self):
        raise RuntimeError("no iteration")

    __hash__ = None


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: Any = QUESTION
for _ in range(3000):
    DEEP = {"input": DEEP}


@pytest.mark.parametrize(
    "value",
    [None, 3, 2.5, b"bytes", [], {}, set(), [None], {"question": None}, {1: 2}, Strange(), [Strange()], CIRCLE, DEEP],
    ids=lambda value: type(value).__name__,
)
def test_a_strange_input_and_output(captured, value):
    program = RunnableLambda(lambda given: given)

    assert program.invoke(value, captured.config) is value
    list(program.stream(value, captured.config))
    assert {answer.status for answer in captured.answers()} <= {"complete"}


def untyped():
    document = Document(page_content="text")
    document.page_content = None
    return document


@pytest.mark.parametrize(
    "result",
    [None, 3, "text", ["a", "b"], [{"page_content": "a"}], [untyped()], [None], Strange(), [Strange()], {"a": 1}],
    ids=lambda result: type(result).__name__,
)
def test_a_strange_search_result(captured, result):
    program = rag_chain(FixedRetriever(result=result), formatter=lambda found: "some text")

    assert program.invoke(QUESTION, captured.config) == ANSWER
    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, ANSWER, "complete")
    assert not answer.contexts


# The program's context, threads and time


def values():
    return {variable.name: value for variable, value in contextvars.copy_context().items()}


def changed(before, after):
    return {name for name in before.keys() | after.keys() if before.get(name) is not after.get(name)}


def test_context_variables_are_as_before(captured, caplog):
    """No tracing context is attached, which could not be detached in another context again."""

    def run_some(config):
        before = values()
        rag_chain().invoke(QUESTION, config)
        list(rag_chain().stream(QUESTION, config))
        rag_chain().batch([QUESTION, QUESTION], config)
        chunks = rag_chain().stream(QUESTION, config)
        next(chunks)
        chunks.close()
        return changed(before, values())

    plain = contextvars.Context().run(run_some, {"callbacks": []})
    assert contextvars.Context().run(run_some, captured.config) == plain
    assert len(captured.records()) == 5
    assert [line for line in caplog.records if line.name.startswith("opentelemetry")] == []


async def test_context_variables_of_asynchronous_code_are_as_before(captured, caplog):
    async def run_some(config):
        before = values()
        await rag_chain().ainvoke(QUESTION, config)
        async for _ in rag_chain().astream(QUESTION, config):
            pass
        await asyncio.gather(*(rag_chain().ainvoke(QUESTION, config) for _ in range(3)))
        return changed(before, values())

    plain = await asyncio.create_task(run_some({"callbacks": []}))
    assert await asyncio.create_task(run_some(captured.config)) == plain
    assert len(captured.records()) == 5
    assert [line for line in caplog.records if line.name.startswith("opentelemetry")] == []


async def test_an_asynchronous_stream_starts_no_thread(captured):
    class AsynchronousModel(GenericFakeChatModel):
        messages: Any = iter(())

        async def _astream(self, *args, **kwargs):
            for word in ANSWER.split(" "):
                yield token(f"{word} ")

    before = threading.active_count()
    async for _ in AsynchronousModel().astream(QUESTION, captured.config):
        pass

    assert threading.active_count() == before


def test_a_synchronous_stream_starts_no_event_loop(captured, monkeypatch):
    started = []
    new_event_loop = asyncio.events.new_event_loop

    def counted():
        started.append(True)
        return new_event_loop()

    monkeypatch.setattr(asyncio.events, "new_event_loop", counted)
    list(chat_model().stream(QUESTION, captured.config))

    assert started == []


def test_handlers_are_cheap_to_make():
    """Some programs make one for each request."""
    sink = CollectingSink()
    threads, began = threading.active_count(), time.process_time()
    for _ in range(200):
        RagspanCallbackHandler(sink=sink)

    assert threading.active_count() == threads
    assert time.process_time() - began < 0.2


@pytest.mark.slow
def test_large_documents_cost_the_request_little(new_captures):
    """Ten documents of a megabyte: no copying, hashing or matching while the request waits."""
    texts = [f"Volume {number}. " + f"page{number} " * 150_000 for number in range(10)]
    source = FixedRetriever(result=lambda: [Document(page_content=text) for text in texts])
    program = rag_chain(source)

    def seconds(config):
        gc.collect()
        gc.disable()
        try:
            began = time.process_time()
            program.invoke(QUESTION, config)
            return time.process_time() - began
        finally:
            gc.enable()

    captured = new_captures()
    plain = min(seconds({"callbacks": []}) for _ in range(7))
    observed = min(seconds(captured.config) for _ in range(7))

    assert observed - plain < 0.08
    assert captured.answers() == [Answered(QUESTION, texts, ANSWER)] * 7


# Errors


def test_an_error_in_a_callback_is_no_error_of_the_programs(captured):
    """A sink that fails costs a record, not an answer."""

    class FailingSink(CollectingSink):
        def submit(self, capture):
            raise OSError("no room")

    failing = Captures(FailingSink())

    assert rag_chain().invoke(QUESTION, failing.config) == ANSWER
    assert failing.sink.errors == ["callback"]
    assert failing.handler.open_runs == 0
    assert not failing.handler.raise_error


@pytest.mark.parametrize("hook", ["on_interrupt", "on_resume"])
def test_the_hooks_of_graphs_accept_any_event(captured, hook):
    getattr(captured.handler, hook)(object())

    assert captured.sink.errors == []


def test_a_retriever_that_is_called_without_a_chain_gets_its_documents(captured):
    class OwnRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return documents(*FOUND)

    assert texts_of(OwnRetriever().invoke(QUESTION, captured.config)) == FOUND
    assert texts_of(retriever().invoke(QUESTION, captured.config)) == FOUND
