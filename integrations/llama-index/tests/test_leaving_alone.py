"""What the handler must not do to a program: change its objects, errors, context or streams, or fail in it.

Most of these run a program without and with the handler, and compare what the program saw.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading

import pytest
from captures import Captures, CollectingSink
from li_agents import agent, ask
from li_chats import chat_engine
from li_model import calls
from li_programs import ANSWER, QUESTION, drained, engine, engine_tool
from llama_index.core import Settings

from ragspan_llama_index import RagspanCallbackHandler

# Errors


class BrokenSink(CollectingSink):
    """Breaks its promise never to raise."""

    calls = 0

    def submit(self, capture):
        self.calls += 1
        raise OSError("secret")


@pytest.fixture
def uncaught(monkeypatch):
    """Errors that nobody caught, in threads and finalizers."""
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda details: seen.append(details.exc_value))
    monkeypatch.setattr(sys, "unraisablehook", lambda details: seen.append(details.exc_value))
    return seen


def test_a_sink_that_fails_costs_records_and_no_answer(uncaught, caplog):
    captured = Captures(RagspanCallbackHandler, BrokenSink())
    try:
        with caplog.at_level(logging.WARNING):
            assert str(engine().query(QUESTION)) == ANSWER
            streaming = engine(streaming=True)
            assert "".join(streaming.query(QUESTION).response_gen) == ANSWER
            next(streaming.query(QUESTION).response_gen)
            streaming.query(QUESTION)
            gc.collect()
            assert "".join(chat_engine("context").stream_chat("The cello?").response_gen) == ANSWER

            async def asynchronous():
                assert await drained((await streaming.aquery(QUESTION)).response_gen) == ANSWER
                Settings.llm.says(calls("search", input="cello"), ANSWER, "In the end.")
                assert str(await ask(agent(engine_tool("search")), QUESTION)) == "In the end."

            asyncio.run(asynchronous())
    finally:
        captured.handler.detach()

    assert captured.sink.calls == 7
    assert captured.sink.errors == ["callback"] * 7
    assert captured.handler.open_spans == 0
    assert uncaught == []
    assert "OSError" in caplog.text
    assert "secret" not in caplog.text
