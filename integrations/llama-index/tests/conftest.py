from __future__ import annotations

import asyncio
import gc
import inspect
import logging
from pathlib import Path

import pytest
from captures import Captures
from li_model import ScriptedModel, WordEmbedding
from li_programs import ANSWER
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from traced_application import application, new_application  # noqa: F401 - fixtures
from whole_records import WholeRecords

from ragspan_llama_index import RagspanCallbackHandler

WHOLE = WholeRecords(Path(__file__).with_name("whole_records.json"), "llama-index-core")
NOT_WHOLE = {"test_traced_already", "test_letting_go"}  # ids by chance, threads that take turns, and hundreds alike

FRAMEWORK_WARNINGS = [
    "ignore:`langchain-community` is being sunset:DeprecationWarning",  # where installed, `Settings.embed_model` imports it
    "ignore:The `.*` (attribute|method) is deprecated:pydantic.warnings.PydanticDeprecatedSince20",  # agents list themselves
    "ignore:Accessing the 'model_.*' attribute on the instance:pydantic.warnings.PydanticDeprecatedSince211",  # the same
    "ignore:is_running called from within a step:DeprecationWarning",  # reasoning agents, and those that stop early
    "ignore:Skipping serialization of known unserializable key. memory",  # when a run's context is used again
]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for line in FRAMEWORK_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(line))


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """LlamaIndex uses the data that it brings, and nothing tells ragspan what to do."""
    for name in ("TIKTOKEN_CACHE_DIR", "NLTK_DATA", "RAGSPAN_ENABLED", "RAGSPAN_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_event_loop_is_left(request):
    """Where Python makes a loop for the main thread, LlamaIndex's synchronous code uses it and never closes it."""
    if not inspect.iscoroutinefunction(request.function):
        asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def model():
    """The model that everything uses by default; it says `ANSWER` unless it is told otherwise."""
    Settings.callback_manager = CallbackManager([])
    Settings.embed_model = WordEmbedding()
    Settings.llm = scripted = ScriptedModel().says(ANSWER)
    return scripted


@pytest.fixture
def new_captures():
    """Attaches handlers; when the test is over, none of them may follow a request or have had an error."""
    made = []

    def make(sink=None):
        made.append(Captures(RagspanCallbackHandler, sink))
        return made[-1]

    yield make
    if any(captures.handler.open_spans for captures in made):
        gc.collect()  # streams that the test dropped in a cycle
    for captures in made:
        captures.handler.detach()
    assert [captures.handler.open_spans for captures in made] == [0] * len(made)
    assert [error for captures in made for error in captures.sink.errors] == []


@pytest.fixture
def captured(new_captures):
    """An attached handler, and the records of what it captured."""
    return new_captures()


@pytest.fixture
def expected_failure(caplog):
    """The framework may log the failure that the test provokes."""
    for name in ("llama_index", "llama_index_instrumentation", "workflows", "asyncio"):
        caplog.set_level(logging.CRITICAL, logger=name)


@pytest.fixture
def handle():
    """Attaches handlers, for applications."""
    attached = []

    def attach(traced):
        attached.append(RagspanCallbackHandler(sink=traced.engine))

    yield attach
    for handler in attached:
        handler.detach()


@pytest.fixture(autouse=True)
def whole_records(request):
    """Compares what records hold besides what a test looks at."""
    if request.path.stem in NOT_WHOLE:
        yield
        return
    with WHOLE.compared(request, Captures.seen):
        yield
