"""What the handler must let go of: exceptions, streams, documents, and the runs of requests that never end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import types
import weakref
from typing import Any

from captures import Answered, until
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from rag_programs import (
    FOUND,
    PUMP,
    QUESTION,
    FixedRetriever,
    HangingModel,
    HangingRetriever,
    answer_chain,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
    token,
)

from ragspan_langchain.recorder import EventRecorder

_OBJECTS_PER_REQUEST = 8
"""What may stay of a finished request: room for a bounded memory of ids, not for runs."""


class TracedRetriever(BaseRetriever):
    """Returns documents that nobody else holds, and remembers them weakly."""

    made: list[Any]

    def _get_relevant_documents(self, query, *, run_manager):
        found = [Document(page_content=text) for text in FOUND]
        self.made.extend(weakref.ref(document) for document in found)
        return found

    def alive(self):
        gc.collect()
        return sum(reference() is not None for reference in self.made)


def reachable_objects(handler):
    """How many objects the handler keeps alive, not counting code, classes and modules."""
    skipped = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, logging.Logger)
    seen = {id(handler)}
    queue = [handler]
    while queue:
        for item in gc.get_referents(queue.pop()):
            if id(item) not in seen and not isinstance(item, skipped):
                seen.add(id(item))
                queue.append(item)
    return len(seen)


async def cancelled_when(waiting, request):
    waiting.clear()
    task = asyncio.create_task(request)
    await waiting.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_an_exception_is_not_kept_alive(captured):
    """It would keep its traceback, and with it the frames and generators of the request."""
    raised = []

    class DatabaseDown(Exception):
        pass

    class DownRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            error = DatabaseDown("no connection")
            raised.append(weakref.ref(error))
            raise error

    with contextlib.suppress(DatabaseDown):
        rag_chain(DownRetriever()).invoke(QUESTION, captured.config)
    gc.collect()

    assert raised[0]() is None
    assert captured.answers() == [Answered(QUESTION, [], None, "error")]


async def test_the_providers_stream_is_closed_with_the_readers(captured):
    closed = []

    class Provider(GenericFakeChatModel):
        messages: Any = iter(())

        async def _astream(self, *args, **kwargs):
            try:
                for word in itertools.cycle(("again ", "and ")):
                    yield token(word)
            finally:
                closed.append(True)

    async def read_two():
        chunks = rag_chain(model=Provider()).astream(QUESTION, captured.config)
        await anext(chunks)
        await anext(chunks)
        await chunks.aclose()

    await read_two()
    gc.collect()
    await until(lambda: closed)

    assert closed == [True]
    assert captured.answers() == [Answered(QUESTION, FOUND, "again and ", "aborted")]


async def test_cancelled_requests_leave_nothing(captured):
    """Neither the model's run nor the retriever's gets an end event then."""
    waiting = asyncio.Event()
    source = TracedRetriever(made=[])
    in_model = rag_chain(source, HangingModel(waiting=waiting.set))
    in_retriever = rag_chain(HangingRetriever(waiting=waiting.set))

    async def cancel(count):
        for program in (in_model, in_retriever):
            for _ in range(count):
                await cancelled_when(waiting, program.ainvoke(QUESTION, captured.config))

    await cancel(3)
    captured.records()
    before = reachable_objects(captured.handler)
    await cancel(20)

    assert [answer.status for answer in captured.answers()] == ["aborted"] * 40
    assert captured.handler.open_runs == 0
    assert source.alive() == 0
    assert reachable_objects(captured.handler) - before <= 40 * _OBJECTS_PER_REQUEST


def test_documents_are_released(captured):
    """After complete, failed and abandoned requests, and with the records dropped."""
    source = TracedRetriever(made=[])
    for _ in range(10):
        rag_chain(source).invoke(QUESTION, captured.config)
        with contextlib.suppress(ZeroDivisionError):
            (rag_chain(source) | (lambda answer: 1 / 0)).invoke(QUESTION, captured.config)
        chunks = rag_chain(source).stream(QUESTION, captured.config)
        next(chunks)
        chunks.close()
        del chunks

    assert len(captured.records()) == 30
    assert len(source.made) == 90
    assert source.alive() == 0


def test_a_capture_that_waits_to_be_scored_holds_texts_and_no_documents(captured):
    source = TracedRetriever(made=[])
    rag_chain(source).invoke(QUESTION, captured.config)

    assert source.alive() == 0
    assert captured.answer().contexts == FOUND


def test_a_stream_that_is_dropped_can_be_collected(captured):
    stream = rag_chain().stream(QUESTION, captured.config)
    next(stream)
    reference = weakref.ref(stream)
    del stream
    gc.collect()

    assert reference() is None
    assert captured.answer().status == "aborted"


def test_a_handler_on_the_models_constructor_piles_nothing_up(captured):
    """It sees model runs with parents that it does not know."""
    model = chat_model()
    model.callbacks = [captured.handler]
    sizes = []
    for _ in range(20):
        rag_chain(model=model).invoke(QUESTION)
        captured.records()
        sizes.append(reachable_objects(captured.handler))

    assert captured.handler.open_runs == 0
    assert sizes[-1] - sizes[0] <= 19 * _OBJECTS_PER_REQUEST


def test_retriever_and_model_called_apart_leave_nothing(captured):
    """Two calls without a common root are two roots; `ragspan.capture` is there to join them."""
    found = retriever().invoke(QUESTION, captured.config)
    chat_model().invoke(f"{join_texts(found)}\n\n{QUESTION}", captured.config)

    assert captured.handler.open_runs == 0
    assert {answer.status for answer in captured.answers()} <= {"complete"}


def test_many_requests_keep_no_more_than_few(captured):
    program = rag_chain(FixedRetriever(result=lambda: [Document(page_content=PUMP)]))
    for _ in range(20):
        program.invoke(QUESTION, captured.config)
    captured.records()
    before = reachable_objects(captured.handler)
    for _ in range(200):
        program.invoke(QUESTION, captured.config)
    captured.records()

    assert reachable_objects(captured.handler) - before <= 200 * _OBJECTS_PER_REQUEST


def test_batches_and_failed_requests_keep_nothing_open(captured):
    def fail_for_two(fields):
        if "2" in fields["question"]:
            raise ValueError
        return fields

    program = (
        {"question": lambda text: text, "context": retriever() | join_texts}
        | RunnableLambda(fail_for_two)
        | answer_chain()
    )
    program.batch([str(number) for number in range(10)], captured.config, return_exceptions=True)

    assert captured.handler.open_runs == 0
    assert sorted(answer.status for answer in captured.answers()) == ["complete"] * 9 + ["error"]


# Requests that never end


def held_stream(captured):
    stream = rag_chain().stream(QUESTION, captured.config)
    next(stream)
    return stream


def test_the_oldest_request_is_handed_over_when_too_many_are_open(captured):
    captured.handler.recorder = EventRecorder(captured.sink, max_open=2)
    held = [held_stream(captured) for _ in range(3)]

    assert [answer.status for answer in captured.answers()] == ["aborted"]
    for stream in held:
        stream.close()
    assert [answer.status for answer in captured.answers()] == ["aborted", "aborted"]


def test_a_request_that_stands_still_for_too_long_is_handed_over_with_the_next_one(captured):
    captured.handler.recorder = EventRecorder(captured.sink, max_seconds=0, sweep_seconds=0)
    held = held_stream(captured)
    assert captured.answers() == []
    next_one = held_stream(captured)

    assert [answer.status for answer in captured.answers()] == ["aborted"]
    for stream in (held, next_one):
        stream.close()
    assert [answer.status for answer in captured.answers()] == ["aborted"]
