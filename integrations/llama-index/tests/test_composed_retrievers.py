"""Retrievers made of retrievers, of engines, and of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    DRUM,
    HARP,
    OBOE,
    PASSAGES,
    QUESTION,
    TopicRetriever,
    answer_of,
    engine,
    engine_over,
    found,
    ids,
    index,
    retriever,
)
from llama_index.core import StorageContext
from llama_index.core.indices.query.query_transform.base import HyDEQueryTransform
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)
from llama_index.core.schema import IndexNode, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore


def fused(model, mode, **options):
    model.says("What of the drum?\nWhat of the harp and the drum?", ANSWER)
    return QueryFusionRetriever([TopicRetriever()], num_queries=3, mode=mode, similarity_top_k=2, **options)


def test_the_fused_list_of_several_queries(captured, model):
    """The drum comes first: two of the three queries bring it up, and the fused score says so."""
    engine_over(fused(model, "reciprocal_rerank", use_async=False)).query(QUESTION)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [DRUM, CELLO], ANSWER)
    assert [context.score for context in record.contexts] == sorted(
        (context.score for context in record.contexts), reverse=True
    )
    assert all(context.score < 0.1 for context in record.contexts)


def test_a_whole_query_inside_the_retrieval(captured, model):
    """The answer of the inner engine becomes the only passage of the outer one."""
    top = index([IndexNode(index_id="inner", id_="pointer", text="cello strings")])
    recursive = RecursiveRetriever(
        "top",
        retriever_dict={"top": top.as_retriever(similarity_top_k=1)},
        query_engine_dict={"inner": engine("cello")},
    )
    model.says("Inner answer.", ANSWER)
    engine_over(recursive).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, ANSWER)
    assert answer.contexts == [f"Query: {QUESTION}\nResponse: Inner answer."]


def test_a_reference_that_is_followed_to_the_node(captured):
    pointers = index([IndexNode(index_id="whole", id_="pointer", text="cello strings")])
    whole = TextNode(text="The whole chapter about the cello.", id_="whole")
    recursive = RecursiveRetriever(
        "top", retriever_dict={"top": pointers.as_retriever(similarity_top_k=1)}, node_dict={"whole": whole}
    )
    engine_over(recursive).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, ["The whole chapter about the cello."], ANSWER)]


def test_leaves_that_are_merged_into_their_parent(captured):
    """Enough parts of a chapter were found, so that the whole of it is what the model gets."""
    chapter = TextNode(text=f"{PASSAGES['cello']} {PASSAGES['harp']}", id_="chapter")
    parts = [TextNode(text=PASSAGES[name], id_=name) for name in ("cello", "harp")]
    for part in parts:
        part.relationships[NodeRelationship.PARENT] = chapter.as_related_node_info()
    chapter.relationships[NodeRelationship.CHILD] = [part.as_related_node_info() for part in parts]
    store = SimpleDocumentStore()
    store.add_documents([chapter, *parts])
    storage = StorageContext.from_defaults(docstore=store)
    engine_over(AutoMergingRetriever(index(parts).as_retriever(), storage)).query(QUESTION)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [chapter.text], ANSWER)
    assert ids(record.contexts) == ["chapter"]


def test_a_query_that_is_transformed_for_the_retrieval(captured, model):
    model.says("An invented passage about the oboe.", ANSWER)
    transformed = TransformRetriever(TopicRetriever(), HyDEQueryTransform())
    engine_over(transformed).query("What of the harp?")

    assert captured.answers() == [Answered("What of the harp?", [HARP], ANSWER)]


class Blunt(BaseRetriever):
    """Fires no events of a retrieval."""

    def retrieve(self, str_or_query_bundle):
        return found("harp")

    def _retrieve(self, query_bundle):
        return []


class Own(BaseRetriever):
    """Finds what a function of the query finds."""

    def __init__(self, find):
        self.find = find
        super().__init__()

    def _retrieve(self, query_bundle):
        return self.find(query_bundle)


def in_threads(query):
    """Nothing tells that the searches in the pool belong to the request; they make no records of their own."""
    with ThreadPoolExecutor(2) as pool:
        searches = [pool.submit(retriever(name).retrieve, query) for name in ("oboe", "cello")]
        return [node for search in searches for node in search.result()]


def beside_threads(query):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(retriever("oboe").retrieve, query).result()
    return found("cello")


def joined(query):
    return retriever("drum").retrieve(query) + retriever("cello").retrieve(query)


@pytest.mark.parametrize(
    ("source", "way", "contexts"),
    [
        (Own(in_threads), "query", [OBOE, CELLO]),
        (Own(beside_threads), "query", [CELLO]),
        (Own(joined), "query", [DRUM, CELLO]),
        (Blunt(), "query", [HARP]),
        (Own(lambda query: found("harp", "oboe")), "aquery", [HARP, OBOE]),  # LlamaIndex runs the synchronous method
    ],
    ids=["threads", "beside threads", "joined", "public method", "asynchronous"],
)
def test_a_retriever_of_the_programs_own(captured, source, way, contexts):
    answer_of(lambda: engine_over(source), QUESTION, way)

    assert captured.answers() == [Answered(QUESTION, contexts, ANSWER)]
