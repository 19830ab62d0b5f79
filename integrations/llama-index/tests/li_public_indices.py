"""Public programs of LlamaIndex: its indices, retrievers, postprocessors and engines."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    DRUM,
    HARP,
    PASSAGES,
    QUESTION,
    FixedRetriever,
    engine_over,
    index,
    node,
    retriever,
    seen,
)
from li_public import program
from llama_index.core import (
    DocumentSummaryIndex,
    KnowledgeGraphIndex,
    PropertyGraphIndex,
    Settings,
    SimpleKeywordTableIndex,
    SQLDatabase,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    get_response_synthesizer,
)
from llama_index.core.graph_stores.types import EntityNode
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import (
    FixedRecencyPostprocessor,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    PIINodePostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    FLAREInstructQueryEngine,
    NLSQLTableQueryEngine,
    RetrieverQueryEngine,
)
from llama_index.core.retrievers import SummaryIndexLLMRetriever, VectorIndexAutoRetriever
from llama_index.core.schema import Document, NodeWithScore
from llama_index.core.vector_stores import MetadataInfo, VectorStoreInfo
from pydantic import BaseModel
from sqlalchemy import create_engine, text


@program([CELLO, HARP], "Doc: 1, Relevance: 9\nDoc: 2, Relevance: 5", ANSWER)
def a_list_whose_nodes_a_model_chooses():
    made = SummaryIndex([node(name) for name in ("cello", "harp", "drum")])
    RetrieverQueryEngine(SummaryIndexLLMRetriever(made), get_response_synthesizer()).query(QUESTION)


@program([CELLO], "ANSWER: 1\nBecause it is about the cello.", ANSWER)
def a_tree_that_a_model_walks():
    made = TreeIndex([node("cello"), node("harp")], num_children=10)
    made.as_query_engine(child_branch_factor=1).query(QUESTION)


@program([CELLO])
def a_table_of_keywords():
    made = SimpleKeywordTableIndex([node("cello"), node("drum")])
    made.as_query_engine(retriever_mode="simple").query(QUESTION)


@program([CELLO], "A summary of what is said of the cello.", ANSWER)
def summaries_of_documents_that_a_model_chooses_by():
    made = DocumentSummaryIndex.from_documents(
        [Document(text=PASSAGES["cello"], id_="c", metadata={"book": "instruments"})]
    )
    made.as_query_engine().query(QUESTION)


TRIPLETS = (
    "The following are knowledge sequence in max depth 2 in the form of directed graph like:\n"
    "`subject -[predicate]->, object, <-[predicate_next_hop]-, object_next_hop ...`\n['Cello', 'Has', 'Strings']"
)


@program([CELLO, TRIPLETS], "(Cello, has, strings)", "KEYWORDS: Cello", ANSWER)
def a_graph_of_triplets():
    made = KnowledgeGraphIndex([node("cello")])
    made.as_query_engine().query(QUESTION)


@program(["The cello has four strings."])
def a_graph_of_properties():
    from llama_index.core.graph_stores import SimplePropertyGraphStore
    from llama_index.core.indices.property_graph import CustomPGRetriever

    class Walking(CustomPGRetriever):
        def init(self, **_):
            pass

        def custom_retrieve(self, query_str):
            return "The cello has four strings."

    graph = SimplePropertyGraphStore()
    graph.upsert_nodes([EntityNode(name="cello")])
    made = PropertyGraphIndex.from_existing(property_graph_store=graph, embed_kg_nodes=False)
    made.as_query_engine(sub_retrievers=[Walking(graph)]).query(QUESTION)


@program(["[(4,)]"], "select strings from instruments where name = 'cello'", ANSWER)
def a_query_of_a_database():
    made = create_engine("sqlite://")
    with made.begin() as connection:
        connection.execute(text("create table instruments (name text, strings integer)"))
        connection.execute(text("insert into instruments values ('cello', 4), ('harp', 47)"))
    NLSQLTableQueryEngine(SQLDatabase(made), tables=["instruments"]).query(QUESTION)
    made.dispose()


@program([CELLO], "It has [Search(strings of the cello)].", "four of them", ANSWER, "done", response=f"{ANSWER} ")
def a_search_for_what_the_draft_does_not_know():
    FLAREInstructQueryEngine(engine_over(retriever("cello")), max_iterations=2).query(QUESTION)


@program(
    [seen("cello").replace("book: instruments", "book: instruments\ndate: 2024-05-03")],
    marks=[pytest.mark.skipif(find_spec("pandas") is None, reason="the postprocessor needs pandas")],
)
def the_most_recent_node():
    dated = [node(name) for name in ("harp", "cello")]
    for each, date in zip(dated, ("2019-01-01", "2024-05-03"), strict=True):
        each.metadata["date"] = date
    found = [NodeWithScore(node=each, score=0.5) for each in dated]
    engine_over(FixedRetriever(found), FixedRecencyPostprocessor()).query(QUESTION)


@program([CELLO, DRUM, HARP])
def nodes_that_are_reordered_for_long_prompts():
    engine_over(retriever("cello", "harp", "drum"), LongContextReorder()).query(QUESTION)


@program(
    ["book: instruments\n\nThe [NAME1] has four strings and is played sitting down."],
    'The [NAME1] has four strings and is played sitting down.\nOutput Mapping:\n{"NAME1": "cello"}',
    ANSWER,
)
def names_that_a_model_masks():
    engine_over(retriever("cello"), PIINodePostprocessor(llm=Settings.llm)).query(QUESTION)


@program(
    ["The cello has four strings.  It is played sitting down.  The harp has forty-seven."],
    question="Is it played sitting down?",
)
def sentences_with_the_window_around_them():
    parser = SentenceWindowNodeParser.from_defaults(window_size=1)
    nodes = parser.get_nodes_from_documents(
        [Document(text="The cello has four strings. It is played sitting down. The harp has forty-seven.")]
    )
    made = VectorStoreIndex(nodes)
    made.as_query_engine(
        similarity_top_k=1, node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")]
    ).query("Is it played sitting down?")


@program([CELLO], '{"query": "strings", "filters": [], "top_k": 1}', ANSWER)
def filters_that_a_model_infers():
    about = VectorStoreInfo(
        content_info="instruments", metadata_info=[MetadataInfo(name="book", type="str", description="the book")]
    )
    source = VectorIndexAutoRetriever(index([node("cello")]), vector_store_info=about, similarity_top_k=1)
    RetrieverQueryEngine(source, get_response_synthesizer()).query(QUESTION)


class Fact(BaseModel):
    """How many strings there are."""

    strings: int
    source: str


@program([CELLO], calls("Fact", strings=4, source="instruments"), response='{"strings":4,"source":"instruments"}')
def an_answer_in_a_class_of_the_programs_own():
    engine_over(retriever("cello"), output_cls=Fact).query(QUESTION)


class Translating(BaseNodePostprocessor):
    """Has a model translate each node."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for each in nodes:
            each.node.set_content(Settings.llm.complete(f"Translate: {each.node.text}").text)
        return nodes


@program(
    ["book: instruments\n\nDas Cello hat vier Saiten und wird im Sitzen gespielt."],
    "Das Cello hat vier Saiten und wird im Sitzen gespielt.",
    ANSWER,
)
def nodes_that_a_model_translates():
    engine_over(retriever("cello"), Translating()).query(QUESTION)
