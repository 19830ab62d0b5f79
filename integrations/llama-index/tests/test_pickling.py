"""Handlers that travel to other processes with what holds them."""

from __future__ import annotations

import json
import pickle

import pytest
from captures import PlainSink, in_another_process
from li_programs import QUESTION, engine

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


def test_a_copy_in_the_same_process_adds_no_record(captured):
    copy = pickle.loads(pickle.dumps(captured.handler))
    engine().query(QUESTION)

    assert len(captured.records()) == 1
    assert copy.open_spans == 0
    copy.detach()
