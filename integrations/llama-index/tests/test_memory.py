"""Queries that wait, with metadata of megabytes, stay within the queue's bound."""

from __future__ import annotations

import pytest
from memory import LINUX, assert_bounded, growth_of

pytestmark = [pytest.mark.slow, LINUX]

PROGRAM = """
    from llama_index.core import Settings
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from ragspan_llama_index import RagspanLlamaIndexInstrumentor

    Settings.llm, Settings.embed_model = MockLLM(max_tokens=5), MockEmbedding(4)
    engine = waiting_engine()
    RagspanLlamaIndexInstrumentor().instrument(sink=engine)

    class Retriever(BaseRetriever):
        def _retrieve(self, bundle):
            about = metadata(int(bundle.query_str))
            node = TextNode(text="The fee is 5 euros.", id_=bundle.query_str, metadata=about)
            node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = list(about)
            return [NodeWithScore(node=node, score=1.0)]

    queries = RetrieverQueryEngine.from_args(Retriever())
    report(lambda number: queries.query(str(number)), engine.stats)
"""


def test_of_llama_index():
    assert_bounded(growth_of(PROGRAM))
