from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest
from pydantic import BaseModel

from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.blocking import BlockingChatClient
from ragspan.usage import Usage

PATIENCE = 120.0
TRACE = ContextVar("trace", default="none")


class OfNothing(BaseModel):
    """A framework's model without fields."""


class Model(BlockingChatClient):
    """Answers with what a function of the capabilities returns."""

    def __init__(self, answer):
        super().__init__(OfNothing())
        self._answer_in = answer

    def ask(self, messages, *, schema, temperature, capabilities):
        return Completion(text=self._answer_in(capabilities), usage=Usage(requests=1))


@pytest.fixture
async def one_thread():
    """The running loop has a single thread for calls that block."""
    with ThreadPoolExecutor(1) as thread:
        asyncio.get_running_loop().set_default_executor(thread)
        yield


async def ask(model, n=1):
    completions = await model.complete([{"role": "user", "content": "Judge!"}], schema={}, n=n, temperature=0.0)
    return [completion.text for completion in completions]


@pytest.mark.usefixtures("one_thread")
async def test_a_request_that_nobody_waits_for_any_more_is_not_made():
    asked = []
    assert repr(Model(None)) == "Model(OfNothing)"
    started, released = threading.Event(), threading.Event()

    def answer(_):
        asked.append("asked")
        started.set()
        released.wait(PATIENCE)
        return "late"

    asking = asyncio.ensure_future(ask(Model(answer), 3))
    await asyncio.sleep(0)
    started.wait(PATIENCE)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    released.set()
    await ask(Model(lambda _: "done"))

    assert asked == ["asked"]


async def test_what_a_model_refuses_is_left_out_from_then_on():
    sent = []

    def answer(capabilities):
        sent.append(capabilities.left_out)
        if capabilities.takes("temperature"):
            raise ValueError("temperature is not supported")
        return "done"

    model = Model(answer)

    assert (await ask(model), await ask(model)) == (["done"], ["done"])
    assert sent == [{"n"}, {"n", "temperature"}, {"n", "temperature"}]
