"""What the handler must let go of once a request is over, however it went."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import threading
import weakref

import pytest
from li_agents import agent, ask
from li_chats import chat_engine
from li_model import Breaks, Hangs, calls
from li_programs import (
    ANSWER,
    QUESTION,
    FixedRetriever,
    drained,
    engine,
    engine_over,
    engine_tool,
    retriever,
)
from li_workflows import one_step

pytestmark = pytest.mark.usefixtures("expected_failure")


def streaming():
    return engine(streaming=True, response_mode="tree_summarize")


def answer(model):
    engine().query(QUESTION)


def read(model):
    list(streaming().query(QUESTION).response_gen)


def never_read(model):
    streaming().query(QUESTION)


def leave(model):
    next(streaming().query(QUESTION).response_gen)


def break_stream(model):
    model.says(Breaks("It ", RuntimeError("connection lost")))
    read(model)


def fail(model):
    model.says(RuntimeError("overloaded"))
    answer(model)


def swallow(model):
    model.says(ValueError("no quota"))
    answer(model)


def search_in_vain(model):
    engine_over(FixedRetriever(ConnectionError("no database"))).query(QUESTION)


def search_alone(model):
    retriever().retrieve(QUESTION)


def ask_alone(model):
    model.complete("Hello")
    list(model.stream_complete("Hello"))


async def cancel(model):
    thinks = asyncio.Event()
    model.says(Hangs(thinks.set))
    task = asyncio.create_task(engine().aquery(QUESTION))
    await thinks.wait()
    task.cancel()
    await asyncio.wait([task])


async def read_asynchronously(model):
    await drained((await streaming().aquery(QUESTION)).response_gen)


async def never_read_asynchronously(model):
    await streaming().aquery(QUESTION)


async def leave_asynchronously(model):
    await anext((await streaming().aquery(QUESTION)).response_gen)


def chat(model):
    list(chat_engine("context").stream_chat("The cello?").response_gen)


def break_chat(model):
    model.says(Breaks("It ", RuntimeError("connection lost")))
    chat(model)


def leave_chat(model):
    next(chat_engine("context").stream_chat("The cello?").response_gen)


async def leave_chat_asynchronously(model):
    response = await chat_engine("context").astream_chat("The cello?")
    await anext(response.async_response_gen())


async def run_agent(model):
    model.says(calls("search", input="cello"), ANSWER)
    await ask(agent(engine_tool("search")), QUESTION)


async def fail_agent(model):
    model.says(RuntimeError("overloaded"))
    await ask(agent(engine_tool("search")), QUESTION)


async def run_workflow(model):
    await one_step(lambda event: engine().aquery(event.query)).run(query=QUESTION)


async def fail_workflow(model):
    async def broken(event):
        raise LookupError("no such page")

    await one_step(broken).run(query=QUESTION)


async def time_workflow_out(model):
    async def slow(event):
        await asyncio.Event().wait()

    await one_step(slow, timeout=0.01).run(query=QUESTION)


async def cancel_workflow(model):
    waiting = asyncio.Event()

    async def slow(event):
        waiting.set()
        await asyncio.Event().wait()

    run = one_step(slow).run(query=QUESTION)
    await waiting.wait()
    await run.cancel_run()
    with contextlib.suppress(BaseException):
        await run


async def forget_workflow(model):
    async def slow(event):
        await asyncio.Event().wait()

    one_step(slow, timeout=None).run(query=QUESTION)
    await asyncio.sleep(0)


COURSES = [
    answer,
    read,
    never_read,
    leave,
    break_stream,
    fail,
    swallow,
    search_in_vain,
    search_alone,
    ask_alone,
    cancel,
    read_asynchronously,
    never_read_asynchronously,
    leave_asynchronously,
    chat,
    break_chat,
    leave_chat,
    leave_chat_asynchronously,
    run_agent,
    fail_agent,
    run_workflow,
    fail_workflow,
    time_workflow_out,
    cancel_workflow,
    forget_workflow,
]


NO_REQUESTS = [search_alone, ask_alone]


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.__name__)
def test_nothing_is_followed_any_more(captured, model, monkeypatch, course):
    monkeypatch.setattr(threading, "excepthook", lambda details: None)
    for _ in range(5):
        with contextlib.suppress(Exception):
            asyncio.run(course(model)) if inspect.iscoroutinefunction(course) else course(model)
    gc.collect()

    assert captured.handler.open_spans == 0
    assert len(captured.records()) == (0 if course in NO_REQUESTS else 5)


# Objects of the application


def test_an_open_stream_is_not_kept_alive_by_the_handler(captured):
    """Otherwise nobody would ever notice that the reader has gone."""
    response = streaming().query(QUESTION)
    next(response.response_gen)
    reference = weakref.ref(response.response_gen)
    del response
    gc.collect()

    assert reference() is None
    assert captured.answer().status == "aborted"
