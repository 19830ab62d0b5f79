"""What is no request: building, embedding, searching and asking the model by itself, and all that a judge does."""

from __future__ import annotations

import pytest
from li_captures import Answered
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    PASSAGES,
    QUESTION,
    drained,
    engine,
    index,
    node,
    retriever,
)
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    Settings,
    SummaryIndex,
    TreeIndex,
    get_response_synthesizer,
)
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.extractors import QuestionsAnsweredExtractor, TitleExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, ToolMetadata

from ragspan.telemetry.suppress import suppressed

NODES = [node(name) for name in PASSAGES]


@pytest.mark.parametrize(
    "build",
    [
        lambda: index().insert_nodes([Document(text="A late page.")]),
        lambda: SummaryIndex(NODES),
        lambda: TreeIndex(NODES, num_children=2),
    ],
    ids=["vectors", "summary", "tree"],
)
def test_building_an_index(captured, build):
    build()

    assert captured.answers() == []


@pytest.mark.parametrize("use_async", [True, False])
def test_building_an_index_of_summaries(captured, model, use_async):
    """It asks the synthesizer for a summary of each document, and no user asked for that."""
    documents = [Document(text=text) for text in PASSAGES.values()]
    summarizer = get_response_synthesizer(response_mode="tree_summarize", use_async=use_async)
    DocumentSummaryIndex.from_documents(documents, response_synthesizer=summarizer)

    assert len(model.prompts) == len(documents)
    assert captured.answers() == []


def test_asking_an_index_of_summaries(captured, model):
    documents = [Document(text=PASSAGES["cello"], id_="cello")]
    built = DocumentSummaryIndex.from_documents(documents)
    model.says("Doc: 1, Relevance: 9", ANSWER)
    built.as_query_engine(retriever_mode="llm").query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [PASSAGES["cello"]], ANSWER)]


def test_asking_indexes_of_other_kinds(captured):
    SummaryIndex(NODES[:2]).as_query_engine().query("Summary?")
    TreeIndex(NODES[:2], build_tree=False).as_query_engine(retriever_mode="all_leaf").query("Leaves?")

    assert captured.answers() == [
        Answered("Summary?", [CELLO, HARP], ANSWER),
        Answered("Leaves?", [CELLO, HARP], ANSWER),
    ]


def test_ingesting_documents_with_a_model(captured, model):
    extractors = [TitleExtractor(), QuestionsAnsweredExtractor(questions=1)]
    pipeline = IngestionPipeline(transformations=[SentenceSplitter(), *extractors, Settings.embed_model])
    pipeline.run(documents=[Document(text=PASSAGES["cello"])])

    assert model.prompts
    assert captured.answers() == []


async def test_searching_alone(captured):
    retriever().retrieve(QUESTION)
    await retriever().aretrieve(QUESTION)
    index().as_retriever().retrieve(QUESTION)

    assert captured.answers() == []


async def test_asking_the_model_alone(captured, model):
    messages = [ChatMessage("Hello")]
    model.complete("Hello")
    model.chat(messages)
    model.predict(PromptTemplate("{word}"), word="Hello")
    list(model.stream_complete("Hello"))
    list(model.stream_chat(messages))
    await model.acomplete("Hello")
    await model.achat(messages)
    await drained(chunk.delta async for chunk in await model.astream_chat(messages))

    assert captured.answers() == []


def test_embedding_alone(captured):
    Settings.embed_model.get_query_embedding("Hello")
    Settings.embed_model.get_text_embedding_batch(["Hello", "Goodbye"])

    assert captured.answers() == []


def test_choosing_alone(captured, model):
    model.says('[{"choice": 1, "reason": "it fits"}]')
    LLMSingleSelector.from_defaults().select([ToolMetadata("Knows cellos.", name="cellos")], QUESTION)

    assert captured.answers() == []


def test_calling_a_function_of_the_models_alone(captured, model):
    model.says(calls("look_up", name="cello"))

    def look_up(name: str) -> str:
        return PASSAGES[name]

    model.predict_and_call([FunctionTool.from_defaults(look_up)], QUESTION)

    assert captured.answers() == []


# The work of a judge


def test_what_runs_under_suppressed_instrumentation(captured):
    with suppressed():
        engine().query(QUESTION)
        list(engine(streaming=True).query(QUESTION).response_gen)

    assert captured.answers() == []
    assert captured.handler.open_spans == 0


async def test_what_runs_under_suppressed_instrumentation_in_asynchronous_code(captured):
    with suppressed():
        response = await engine(streaming=True).aquery(QUESTION)
    await drained(response.response_gen)

    assert captured.answers() == []
    assert captured.handler.open_spans == 0


def test_a_request_beside_a_suppressed_one(captured):
    with suppressed():
        engine().query("Suppressed?")
    engine().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_an_evaluator_that_is_suppressed(captured, model):
    """LlamaIndex's own evaluators ask a query engine."""
    model.says("YES")
    with suppressed():
        result = FaithfulnessEvaluator().evaluate(QUESTION, ANSWER, [CELLO])

    assert result.passing
    assert captured.answers() == []
