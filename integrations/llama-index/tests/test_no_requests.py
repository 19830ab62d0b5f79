"""What is no request: building, embedding, searching and asking the model by itself, and all that a judge does.

The framework reads the annotations of steps at run time, so that here they are no strings.
"""

import asyncio

import pytest
from captures import Answered
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
from li_workflows import one_step
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    Settings,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    get_response_synthesizer,
)
from llama_index.core.evaluation import (
    BaseEvaluator,
    ContextRelevancyEvaluator,
    EvaluationResult,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.extractors import QuestionsAnsweredExtractor, TitleExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from ragspan.telemetry.otel_context import suppressed

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


def test_searching_with_an_engine_among_what_is_searched(captured):
    inner = engine("cello")
    top = VectorStoreIndex([IndexNode(index_id="inner", text="pointer")]).as_retriever()
    RecursiveRetriever("top", retriever_dict={"top": top}, query_engine_dict={"inner": inner}).retrieve(QUESTION)

    assert captured.answers() == []
    assert captured.handler.open_spans == 0


class OwnEvaluator(BaseEvaluator):
    """Asks an engine of its own, as the framework's do."""

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    async def aevaluate(self, query=None, response=None, contexts=None, **_):
        return EvaluationResult(feedback=str(await engine("cello").aquery(f"Is this right? {response}")))


@pytest.mark.parametrize(
    "evaluator", [FaithfulnessEvaluator, RelevancyEvaluator, ContextRelevancyEvaluator, OwnEvaluator]
)
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_evaluating_an_answer(captured, evaluator, asynchronous):
    given = {"query": QUESTION, "response": ANSWER, "contexts": [PASSAGES["cello"]]}
    if asynchronous:
        await evaluator().aevaluate(**given)
    else:
        evaluator().evaluate(**given)

    assert captured.answers() == []
    assert captured.handler.open_spans == 0


async def test_runs_that_answer_nothing(captured):
    class Found(StopEvent):
        nodes: list[NodeWithScore]
        source: ToolOutput

    class Searching(Workflow):
        @step
        async def search(self, event: StartEvent) -> Found:
            nodes = await retriever().aretrieve(event.query)
            source = ToolOutput(tool_name="search", content="Found 2 nodes", raw_input={}, raw_output=nodes)
            return Found(nodes=nodes, source=source)

    async def ingest(event):
        return index()

    async def search(event):
        return await retriever().aretrieve(event.query)

    await one_step(ingest).run(dirname="data")
    await one_step(search).run(query=QUESTION)
    await Searching().run(query=QUESTION)

    assert captured.answers() == []


async def test_what_goes_on_below_a_request_that_is_over(captured):
    """Such as a tool that is served by a task of an earlier request; spans without a role are between."""
    jobs, done = asyncio.Queue(), asyncio.Event()

    @get_dispatcher().span
    async def serve():
        await jobs.get()
        await engine("harp").aquery("A question of nobody's?")
        done.set()

    class Beginning(CustomQueryEngine):
        def custom_query(self, query_str):
            raise NotImplementedError

        async def acustom_query(self, query_str):
            self.__dict__["task"] = asyncio.create_task(serve())
            await asyncio.sleep(0)
            return ANSWER

    await Beginning().aquery(QUESTION)
    jobs.put_nowait(None)
    await done.wait()
    await asyncio.sleep(0)

    assert [answer.question for answer in captured.answers()] == [QUESTION]
    assert captured.handler.open_spans == 0


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


def embed(model):
    Settings.embed_model.get_query_embedding("Hello")
    Settings.embed_model.get_text_embedding_batch(["Hello", "Goodbye"])


def choose(model):
    model.says('[{"choice": 1, "reason": "it fits"}]')
    LLMSingleSelector.from_defaults().select([ToolMetadata("Knows cellos.", name="cellos")], QUESTION)


def look_up(name: str) -> str:
    return PASSAGES[name]


def call_a_function(model):
    model.says(calls("look_up", name="cello"))
    model.predict_and_call([FunctionTool.from_defaults(look_up)], QUESTION)


@pytest.mark.parametrize("call", [embed, choose, call_a_function])
def test_a_part_of_a_program_alone(captured, model, call):
    call(model)

    assert captured.answers() == []


# The work of a judge


async def test_what_runs_under_suppressed_instrumentation(captured):
    with suppressed():
        engine().query("Suppressed?")
        list(engine(streaming=True).query("Suppressed?").response_gen)
        response = await engine(streaming=True).aquery("Suppressed?")
    await drained(response.response_gen)
    assert captured.answers() == []
    assert captured.handler.open_spans == 0

    engine().query(QUESTION)
    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_an_evaluator_that_is_suppressed(captured, model):
    """LlamaIndex's own evaluators ask a query engine."""
    model.says("YES")
    with suppressed():
        result = FaithfulnessEvaluator().evaluate(QUESTION, ANSWER, [CELLO])

    assert result.passing
    assert captured.answers() == []
