"""What happens to the passages between the search and the prompt."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    answer_of,
    engine_over,
    index,
    node,
    retriever,
)
from llama_index.core import Document
from llama_index.core.node_parser import SentenceWindowNodeParser, TokenTextSplitter
from llama_index.core.postprocessor import (
    LLMRerank,
    MetadataReplacementPostProcessor,
    SimilarityPostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import TextNode

THREE = ("cello", "harp", "drum")


def ask(*postprocessors, names=THREE):
    return engine_over(retriever(*names), *postprocessors).query(QUESTION)


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize(("cutoff", "contexts", "said"), [(0.95, [CELLO], ANSWER), (1.5, [], "Empty Response")])
def test_a_similarity_cutoff(captured, model, way, cutoff, contexts, said):
    """What is retrieved is not what reaches the prompt. Asynchronous code runs synchronous postprocessors in threads."""
    source = engine_over(retriever(*THREE), SimilarityPostprocessor(similarity_cutoff=cutoff))
    answer_of(lambda: source, QUESTION, way)

    assert len(model.prompts) == len(contexts)
    assert captured.answers() == [Answered(QUESTION, contexts, said)]


def test_a_model_that_ranks_anew(captured, model):
    model.says("Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4\n", ANSWER)
    ask(LLMRerank(top_n=2))

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, [HARP, CELLO], ANSWER)
    assert [context.score for context in record.contexts] == [9.0, 4.0]
    assert len(record.generations) == 2


def test_a_sentence_that_is_replaced_in_place_by_the_window_around_it(captured):
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1, sentence_splitter=lambda text: [f"{part}." for part in text.split(".") if part]
    )
    text = "Some lean. The cello has four strings. Others stand."
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    window = MetadataReplacementPostProcessor("window")
    index(nodes).as_query_engine(similarity_top_k=1, node_postprocessors=[window]).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [text.replace(". ", ".  ")], ANSWER)]


def test_the_search_keeps_the_text_that_it_found_when_the_node_is_changed_in_place(captured):
    class Shout(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            for source in nodes:
                source.node.text = source.node.text.upper()
            return nodes

    ask(Shout(), names=("cello",))

    record = captured.record()
    assert [context.text for context in record.contexts] == [f"book: instruments\n\n{node('cello').text.upper()}"]
    assert [node("cello").text in context.text for context in record.retrievals[0].contexts] == [True]


# Citations


def test_a_citation_engine_cuts_passages_into_numbered_sources(captured):
    cited = CitationQueryEngine.from_args(
        index([TextNode(text="The cello has four strings and is played sitting down.", id_="cello")]),
        similarity_top_k=1,
        text_splitter=TokenTextSplitter(chunk_size=7, chunk_overlap=0),
    )
    response = cited.query(QUESTION)

    contexts = captured.answer().contexts
    assert contexts == [source.node.get_content() for source in response.source_nodes]
    assert [text.split("\n")[0] for text in contexts] == ["Source 1:", "Source 2:"]
