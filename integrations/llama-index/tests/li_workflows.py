"""Workflows that the tests are built from.

The framework reads the annotations of steps at run time, so that here they are no strings.
"""

from collections.abc import Callable
from typing import Any

from li_programs import TopicRetriever
from llama_index.core import get_response_synthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step


class Retrieved(Event):
    nodes: list[NodeWithScore]
    query: str


class Answering(Workflow):
    """Retrieves in one step and synthesizes in the next; `finish` makes the result of the response."""

    def __init__(self, finish: Callable[[Any], Any] = str, *, streaming: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.finish = finish
        self.streaming = streaming

    @step
    async def retrieve(self, event: StartEvent) -> Retrieved:
        return Retrieved(nodes=await TopicRetriever().aretrieve(event.query), query=event.query)

    @step
    async def synthesize(self, event: Retrieved) -> StopEvent:
        synthesizer = get_response_synthesizer(streaming=self.streaming, response_mode="tree_summarize")
        return StopEvent(result=self.finish(await synthesizer.asynthesize(event.query, event.nodes)))


def one_step(answer: Callable[..., Any], **options: Any) -> Workflow:
    """A workflow of one asynchronous step that answers with what this function of the start event returns."""

    class OneStep(Workflow):
        @step
        async def answer(self, event: StartEvent) -> StopEvent:
            return StopEvent(result=await answer(event))

    return OneStep(**options)
