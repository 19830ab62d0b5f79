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
from li_model import Breaks, Hangs
from li_programs import QUESTION, engine, engine_tool, retriever
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


def search_alone(model):
    retriever().retrieve(QUESTION)


async def cancel(model):
    thinks = asyncio.Event()
    model.says(Hangs(thinks.set))
    task = asyncio.create_task(engine().aquery(QUESTION))
    await thinks.wait()
    task.cancel()
    await asyncio.wait([task])


def chat(model):
    list(chat_engine("context").stream_chat("The cello?").response_gen)


def break_chat(model):
    model.says(Breaks("It ", RuntimeError("connection lost")))
    chat(model)


async def fail_agent(model):
    model.says(RuntimeError("overloaded"))
    await ask(agent(engine_tool("search")), QUESTION)


async def time_workflow_out(model):
    async def slow(event):
        await asyncio.Event().wait()

    await one_step(slow, timeout=0.01).run(query=QUESTION)


async def forget_workflow(model):
    async def slow(event):
        await asyncio.Event().wait()

    one_step(slow, timeout=None).run(query=QUESTION)
    await asyncio.sleep(0)


COURSES = [answer, never_read, leave, break_stream, fail, search_alone, cancel, break_chat, fail_agent]
COURSES += [time_workflow_out, forget_workflow]


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.__name__)
def test_nothing_is_followed_any_more(captured, model, monkeypatch, course):
    monkeypatch.setattr(threading, "excepthook", lambda details: None)
    for _ in range(5):
        with contextlib.suppress(Exception):
            asyncio.run(course(model)) if inspect.iscoroutinefunction(course) else course(model)
    gc.collect()

    assert captured.handler.open_spans == 0
    assert len(captured.records()) == (0 if course is search_alone else 5)


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
