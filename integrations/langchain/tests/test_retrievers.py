"""Retrievers made of retrievers, and what they return."""

from __future__ import annotations

from typing import Any

import pytest
from captures import Answered
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    MultiVectorRetriever,
    RePhraseQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    LLMChainExtractor,
    LLMChainFilter,
)
from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore
from rag_programs import (
    ANSWER,
    CASING,
    FILTER,
    FOUND,
    HOSE,
    PUMP,
    QUESTION,
    FixedRetriever,
    TopicRetriever,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


class FirstWords(BaseDocumentTransformer):
    """Makes new, shorter documents."""

    def transform_documents(self, documents, **kwargs):
        return [Document(page_content=" ".join(found.page_content.split()[:4])) for found in documents]


class WrappingRetriever(BaseRetriever):
    """Calls another retriever without passing the callbacks on, so that its runs look like siblings."""

    inner: Any
    kept: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        return list(self.inner.invoke(query))[: self.kept]


class PassingRetriever(BaseRetriever):
    """Calls another retriever as its child and passes its result on as it is."""

    inner: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return self.inner.invoke(query, {"callbacks": run_manager.get_child()})


def compressed(compressor, *texts):
    return ContextualCompressionRetriever(base_compressor=compressor, base_retriever=retriever(*texts))


def by_chunks():
    """Finds the parents of the chunks that it stores."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    source = MultiVectorRetriever(vectorstore=store, byte_store=InMemoryByteStore(), id_key="parent")
    source.docstore.mset([("p", documents(PUMP)[0])])
    store.add_documents([Document(page_content="The pump carries", metadata={"parent": "p"})])
    return source


KEEPS_THE_FILTER = RunnableLambda(lambda prompt: "YES" if FILTER in prompt.to_string() else "NO")
EXTRACTED = "Three years of warranty, it says."
SOURCES = {
    "a query that a model rephrases": (
        lambda: RePhraseQueryRetriever.from_llm(TopicRetriever(), chat_model("the hose")),
        [HOSE],
    ),
    "rewritten by a model": (
        lambda: compressed(LLMChainExtractor.from_llm(chat_model(EXTRACTED)), PUMP),
        [EXTRACTED],
    ),
    "filtered by a model": (lambda: compressed(LLMChainFilter.from_llm(KEEPS_THE_FILTER)), [FILTER]),
    "all dropped by a model": (lambda: compressed(LLMChainFilter.from_llm(chat_model("NO"))), []),
    "cut into new documents": (
        lambda: compressed(DocumentCompressorPipeline(transformers=[FirstWords()]), PUMP, HOSE),
        ["The pump carries a", "Spare hoses are ordered"],
    ),
    "parents of chunks": (by_chunks, [PUMP]),
    "no callbacks passed on": (lambda: WrappingRetriever(inner=retriever()), [PUMP]),
    "nothing found": (lambda: FixedRetriever(result=list), []),
    "generator made a list by a later step": (
        lambda: FixedRetriever(result=lambda: iter(documents(*FOUND))) | RunnableLambda(list),
        FOUND,
    ),
    "generator passed on": (
        lambda: PassingRetriever(inner=FixedRetriever(result=lambda: iter(documents(*FOUND)))),
        None,
    ),
}


@pytest.mark.parametrize(("source", "contexts"), SOURCES.values(), ids=SOURCES)
def test_a_retriever_made_of_others(captured, source, contexts):
    """The contexts are what comes out of the outermost one, ranked by its order."""
    rag_chain(source()).invoke(QUESTION, captured.config)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, contexts, ANSWER)
    ranks = [context.rank for context in record.contexts or ()]
    assert ranks == sorted(ranks)


# Retrievers that call others


def test_a_retriever_that_calls_a_chain_with_a_model(captured):
    """A model writes a passage to search with; the search is the retriever's own affair."""

    class HypotheticalRetriever(BaseRetriever):
        writer: Any

        def _get_relevant_documents(self, query, *, run_manager):
            passage = self.writer.invoke(f"Write a passage about: {query}", {"callbacks": run_manager.get_child()})
            return TopicRetriever().invoke(passage.text, {"callbacks": run_manager.get_child()})

    writer = chat_model("A casing lasts for ever, and so does a hose.")
    rag_chain(HypotheticalRetriever(writer=writer)).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [CASING, HOSE], ANSWER)]


# What retrievers return


class ManualPage(Document):
    """A document with more to it."""

    chapter: int = 1


@pytest.mark.parametrize(
    ("result", "formatter"),
    [
        (documents(*FOUND), join_texts),
        (tuple(documents(*FOUND)), join_texts),
        ([ManualPage(page_content=text) for text in FOUND], join_texts),
        (FOUND, "\n".join),
        ([{"page_content": text} for text in FOUND], str),
        ([(found, 0.5) for found in documents(*FOUND)], str),
    ],
    ids=["list", "tuple", "subclass", "texts", "dictionaries", "pairs"],
)
def test_a_search_result_in_another_form(captured, result, formatter):
    rag_chain(FixedRetriever(result=result), formatter=formatter).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_generator_that_an_outer_retriever_turns_into_a_list(captured):
    inner = FixedRetriever(result=lambda: iter(documents(*FOUND)))

    class ReadingRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return list(inner.invoke(query, {"callbacks": run_manager.get_child()}))

    rag_chain(ReadingRetriever()).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_generator_beside_a_list(captured):
    """One of two searches can be read; what the other one found stays unknown."""

    def both(found):
        return join_texts([*found["lazy"], *found["eager"]])

    source = RunnableParallel(lazy=FixedRetriever(result=lambda: iter(documents(PUMP))), eager=retriever(HOSE))
    rag_chain(source, formatter=both).invoke(QUESTION, captured.config)

    assert captured.answer().contexts in (None, [HOSE])
