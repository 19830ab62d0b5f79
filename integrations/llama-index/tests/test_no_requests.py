"""What is no request: building, embedding, searching and asking the model by itself, and all that a judge does.

The framework reads the annotations of steps at run time, so that here they are no strings.
"""

import asyncio

import pytest
from captures import Answered
from li_programs import ANSWER, CELLO, HARP, PASSAGES, QUESTION, drained, engine, index, retriever
from li_workflows import one_step
from llama_index.core.evaluation import (
    ContextRelevancyEvaluator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from ragspan.telemetry.otel_context import suppressed


@pytest.mark.parametrize("evaluator", [FaithfulnessEvaluator, RelevancyEvaluator, ContextRelevancyEvaluator])
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
