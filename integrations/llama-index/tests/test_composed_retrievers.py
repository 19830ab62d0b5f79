"""Retrievers made of retrievers, of engines, and of threads."""

from __future__ import annotations

from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    DRUM,
    PASSAGES,
    QUESTION,
    TopicRetriever,
    engine,
    engine_over,
    ids,
    index,
)
from llama_index.core import StorageContext
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
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
