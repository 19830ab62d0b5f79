"""A workflow that retrieves, reranks and synthesizes, whose answers are scored: python examples/llama_index_workflow.py.

It answers twice, as a whole and as a stream. The spans are printed.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import ragspan
from ragspan_llama_index import RagspanCallbackHandler

HANDBOOK = [
    "Gamma sends invoices by registered mail.",
    "Beta refunds a cancelled order within ten days.",
    "Beta settles card payments after midnight.",
    "Gamma accepts complaints by telephone only.",
]
BEST = 2  # passages that the reranker leaves


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{5,}", text.lower()))


class Clerk(CustomLLM):
    """Your model, such as OpenAI("gpt-4o-mini"); this one finds the passages that have the question's words."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="clerk")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self._reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Iterator[CompletionResponse]:
        text = ""
        for word in re.findall(r"\S+\s*", self._reply(prompt)):
            text += word
            yield CompletionResponse(text=text, delta=word)

    def _reply(self, prompt: str) -> str:
        question = prompt.rpartition("uestion: " if "Relevance" in prompt else "Query: ")[2]
        passages = [passage for passage in HANDBOOK if passage in prompt]
        passages.sort(key=lambda passage: len(words(passage) & words(question)), reverse=True)
        if "Relevance" in prompt:  # the reranker asks
            shown = sorted(passages, key=prompt.index)
            return "\n".join(f"Doc: {shown.index(passage) + 1}, Relevance: 9" for passage in passages[:BEST])
        return passages[0]


class Retrieved(Event):
    nodes: list[NodeWithScore]


class Reranked(Event):
    nodes: list[NodeWithScore]


class Answering(Workflow):
    """The index is searched for much, and the model reads the best of it."""

    def __init__(self, index: VectorStoreIndex, **options: Any) -> None:
        super().__init__(**options)
        self.index = index

    @step
    async def retrieve(self, context: Context, event: StartEvent) -> Retrieved:
        await context.store.set("question", event.question)
        await context.store.set("is_streamed", event.get("is_streamed", False))
        retriever = self.index.as_retriever(similarity_top_k=len(HANDBOOK))
        return Retrieved(nodes=await retriever.aretrieve(event.question))

    @step
    async def rerank(self, context: Context, event: Retrieved) -> Reranked:
        reranker = LLMRerank(top_n=BEST)
        question = await context.store.get("question")
        return Reranked(nodes=reranker.postprocess_nodes(event.nodes, query_str=question))

    @step
    async def synthesize(self, context: Context, event: Reranked) -> StopEvent:
        synthesizer = CompactAndRefine(streaming=await context.store.get("is_streamed"))
        return StopEvent(result=await synthesizer.asynthesize(await context.store.get("question"), event.nodes))


def answering() -> Answering:
    Settings.llm = Clerk()
    Settings.embed_model = MockEmbedding(8)  # your embedding
    return Answering(VectorStoreIndex([TextNode(text=passage) for passage in HANDBOOK]), timeout=60)


async def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    trace.set_tracer_provider(provider)
    Settings.callback_manager = CallbackManager([RagspanCallbackHandler()])
    workflow = answering()

    print(await workflow.run(question="When are card payments settled?"))
    streamed: Any = await workflow.run(question="How soon is a cancelled order refunded?", is_streamed=True)
    async for piece in streamed.async_response_gen():
        print(piece, end="")
    print()

    ragspan.default_engine().flush(timeout=10)  # a server need not: scores follow in the background, and at exit


if __name__ == "__main__":
    asyncio.run(main())
