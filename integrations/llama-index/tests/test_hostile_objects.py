"""Nothing of the program's runs because a handler listens, whatever its objects are made of, and nothing of it is kept."""

from __future__ import annotations

import gc
import weakref

import pytest
from counted_objects import RUNS, Everything, hostile_objects
from li_programs import QUESTION, ask_model
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragspan_llama_index.classes import facts_about, kind_of
from ragspan_llama_index.objects import text_of

LARGE = 1 << 20


class LazyNode(TextNode):
    """Keeps its text elsewhere, and writes it in a way of its own."""

    def get_content(self, metadata_mode=None):
        RUNS["LazyNode.get_content"] += 1
        return "loaded"

    def get_metadata_str(self, mode=None):
        RUNS["LazyNode.get_metadata_str"] += 1
        return "loaded"


class Finds(BaseRetriever):
    def _retrieve(self, query):
        return [
            NodeWithScore(node=kind(text=f"The pump is blue, by {kind.__name__}.", metadata={"page": 1}), score=0.5)
            for kind in (TextNode, LazyNode)
        ]


class Own(CustomQueryEngine):
    value: object = None
    given: object = None

    def custom_query(self, query_str):
        found = Finds().retrieve(query_str)
        for each in found:
            each.node.metadata |= {"value": self.value, "large": "w" * LARGE}
        said = ask_model("\n".join(each.node.__dict__["text"] for each in found))
        response = Response(said, source_nodes=found)
        response.metadata = {"value": self.value}
        return response if self.given is None else self.given


def runs_of(engine):
    RUNS.clear()
    engine.query(QUESTION)
    runs = dict(RUNS)
    RUNS.clear()
    return runs


@pytest.mark.parametrize("name", hostile_objects())
def test_no_attribute_or_operator_of_an_object_in_metadata_runs(captured, name):
    assert runs_of(Own(value=hostile_objects()[name])) == {}

    record = captured.record()
    assert record.question == QUESTION
    assert record.retrievals[0].contexts[0].metadata["page"] == 1
    assert record.size_hint < LARGE
    assert not RUNS


@pytest.mark.parametrize("name", sorted(hostile_objects().keys() - {"class", "range", "generator", "bytes", "liar"}))
def test_no_attribute_or_operator_of_an_answer_runs(captured, name):
    """But of the liar, whose class the framework itself asks for."""
    assert runs_of(Own(given=hostile_objects()[name])) == {}

    captured.answers()
    assert not RUNS


def test_nothing_of_the_program_is_kept_once_the_request_is_over(captured):
    value = Everything()
    reference = weakref.ref(value)
    Own(value=value).query(QUESTION)
    del value
    gc.collect()

    assert reference() is None
    assert captured.record().question == QUESTION


class _Hashed(type):
    """Counts how often one of its classes is hashed."""

    def __hash__(cls):
        RUNS["_Hashed.__hash__"] += 1
        return type.__hash__(cls)


class Part(metaclass=_Hashed):
    """Of an answer."""

    def __init__(self):
        self.answer = "The pump is blue."


def test_a_class_is_known_by_its_identity_and_never_hashed():
    part = Part()
    RUNS.clear()

    assert kind_of(part) is None
    assert facts_about(Part) is facts_about(Part)
    assert text_of(part) is None
    assert not RUNS
