"""Capture without a change in the program, and switched off."""

from __future__ import annotations

import copy
import importlib.metadata
import pickle

import pytest
from captures import CollectingSink
from li_programs import ANSWER, QUESTION, engine
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index_instrumentation import get_dispatcher

from ragspan.defaults import default_engine, set_default_engine
from ragspan_llama_index import RagspanCallbackHandler, RagspanLlamaIndexInstrumentor


@pytest.fixture
def sink():
    return CollectingSink()


@pytest.fixture
def instrumented(sink):
    """Every LlamaIndex call of the process is captured."""
    instrumentor = RagspanLlamaIndexInstrumentor()
    instrumentor.instrument(sink=sink)
    yield instrumentor
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


def questions(sink):
    return [capture.to_record().question for capture in sink.take()]


def test_a_handler_of_the_same_sink_goes_on_when_the_instrumentor_leaves(sink, instrumented):
    handler = RagspanCallbackHandler(sink)
    instrumented.uninstrument()
    engine().query(QUESTION)

    assert questions(sink) == [QUESTION]
    unread = engine(streaming=True).query(QUESTION)
    handler.detach()
    assert (str(unread), sink.take()) == (ANSWER, []), "a stream goes on, and is not recorded"
    assert not [one for one in get_dispatcher().event_handlers if type(one).__module__.startswith("ragspan")]


def test_a_handler_stands_in_a_callback_manager_and_is_copied_and_pickled_with_it(sink, no_engine_yet):
    own, default = RagspanCallbackHandler(sink), RagspanCallbackHandler()
    manager = CallbackManager([own, default])
    with manager.as_trace("query"), manager.event(CBEventType.QUERY) as event:
        event.on_end()

    assert all(copy.copy(one) is copy.deepcopy(one) is one for one in (own, default))
    of_own, of_default = pickle.loads(pickle.dumps(manager.handlers))
    engine().query(QUESTION)
    assert len(sink.take()) == 1
    CallbackManager([of_own]).on_event_start(CBEventType.QUERY)
    for one in (own, default):
        assert one.open_spans == of_own.open_spans == 0
        one.detach()
    engine().query(QUESTION)
    assert default_engine().stats().submitted == 2, "the copy of the default one goes on"
    of_default.detach()
    engine().query(QUESTION)
    assert default_engine().stats().submitted == 2, "the copy of the other one captures nothing"
    of_own.detach()


def test_it_is_found_by_opentelemetry_instrument():
    (point,) = importlib.metadata.entry_points(group="opentelemetry_instrumentor", name="ragspan_llama_index")

    assert point.load() is RagspanLlamaIndexInstrumentor
    assert point.load()().instrumentation_dependencies() == ["llama-index-core<0.15,>=0.14.17"]


@pytest.mark.parametrize("attach", [RagspanCallbackHandler, lambda: RagspanLlamaIndexInstrumentor().instrument()])
def test_switched_off_it_attaches_nothing(monkeypatch, attach):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    before = list(get_dispatcher().span_handlers)
    try:
        attach()
        assert list(get_dispatcher().span_handlers) == before
    finally:
        set_default_engine(None)
        if RagspanLlamaIndexInstrumentor().is_instrumented_by_opentelemetry:
            RagspanLlamaIndexInstrumentor().uninstrument()
