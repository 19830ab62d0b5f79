"""Handlers that travel to other processes with what holds them."""

from __future__ import annotations

import json
import pickle
import threading

import pytest
from captures import PlainSink, in_another_process
from li_model import ScriptedModel
from li_programs import QUESTION, engine
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager

from ragspan_llama_index import RagspanCallbackHandler

OTHER_PROCESS = """
import json, pickle, sys
from li_model import ScriptedModel
from li_programs import engine
from llama_index.core import Settings
copy = pickle.load(sys.stdin.buffer)
Settings.llm = ScriptedModel().says("Four.")
engine("cello").query("How many?")
sink = copy._own_sink
print(json.dumps([type(copy).__name__, copy._recorder is not None, None if sink is None else len(sink.asked)]))
"""


def copy_of(handler):
    """What a copy of a handler does in another process: its class, whether it captures, how many records its sink got."""
    return json.loads(in_another_process(OTHER_PROCESS, given=pickle.dumps(handler)))


@pytest.mark.slow
def test_a_copy_in_another_process_captures_for_its_sink():
    handler = RagspanCallbackHandler(sink=PlainSink())
    handler.detach()

    assert copy_of(handler) == ["RagspanCallbackHandler", True, 1]


@pytest.mark.slow
def test_a_sink_that_does_not_pickle_stays_behind(caplog):
    sink = PlainSink()
    sink.lock = threading.Lock()
    handler = RagspanCallbackHandler(sink=sink)
    handler.detach()

    assert copy_of(handler) == ["RagspanCallbackHandler", False, None]
    assert "does not pickle" in caplog.text


def test_a_copy_in_the_same_process_adds_no_record(captured):
    copy = pickle.loads(pickle.dumps(captured.handler))
    engine().query(QUESTION)

    assert len(captured.records()) == 1
    assert copy.open_spans == 0
    copy.detach()


def test_a_model_that_holds_a_handler_pickles_as_it_is(captured, caplog):
    """The framework takes out, with a warning, what does not pickle."""
    Settings.llm = ScriptedModel().says("Four.")
    Settings.llm.callback_manager = CallbackManager([captured.handler])
    copy = pickle.loads(pickle.dumps(Settings.llm))

    assert copy.callback_manager is not None
    assert "unpickleable" not in caplog.text
