"""Public programs of LlamaIndex: its indices, retrievers, postprocessors and engines."""

from __future__ import annotations

from li_programs import ANSWER, CELLO, HARP, QUESTION, engine_over, node, retriever
from li_public import program
from llama_index.core import (
    KnowledgeGraphIndex,
    Settings,
    SQLDatabase,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    get_response_synthesizer,
)
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import FLAREInstructQueryEngine, NLSQLTableQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import SummaryIndexLLMRetriever
from llama_index.core.schema import Document
from sqlalchemy import create_engine, text


@program([CELLO, HARP], "Doc: 1, Relevance: 9\nDoc: 2, Relevance: 5", ANSWER)
def a_list_whose_nodes_a_model_chooses():
    made = SummaryIndex([node(name) for name in ("cello", "harp", "drum")])
    RetrieverQueryEngine(SummaryIndexLLMRetriever(made), get_response_synthesizer()).query(QUESTION)


@program([CELLO], "ANSWER: 1\nBecause it is about the cello.", ANSWER)
def a_tree_that_a_model_walks():
    made = TreeIndex([node("cello"), node("harp")], num_children=10)
    made.as_query_engine(child_branch_factor=1).query(QUESTION)


TRIPLETS = (
    "The following are knowledge sequence in max depth 2 in the form of directed graph like:\n"
    "`subject -[predicate]->, object, <-[predicate_next_hop]-, object_next_hop ...`\n['Cello', 'Has', 'Strings']"
)


@program([CELLO, TRIPLETS], "(Cello, has, strings)", "KEYWORDS: Cello", ANSWER)
def a_graph_of_triplets():
    made = KnowledgeGraphIndex([node("cello")])
    made.as_query_engine().query(QUESTION)


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


class Translating(BaseNodePostprocessor):
    """Has a model translate each node; its parameters have names of their own."""

    def _postprocess_nodes(self, found, asked=None):
        for each in found:
            each.node.set_content(Settings.llm.complete(f"Translate: {each.node.text}").text)
        return found


@program(
    ["book: instruments\n\nDas Cello hat vier Saiten und wird im Sitzen gespielt."],
    "Das Cello hat vier Saiten und wird im Sitzen gespielt.",
    ANSWER,
)
def nodes_that_a_model_translates():
    engine_over(retriever("cello"), Translating()).query(QUESTION)
