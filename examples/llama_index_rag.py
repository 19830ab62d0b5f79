"""A LlamaIndex query engine whose answers are scored on their own traces: python examples/llama_index_rag.py.

The spans are printed. For a tracing tool, replace the exporter, for instance by OTLPSpanExporter().
"""

from collections.abc import Iterator
from typing import Any

from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import ragspan
from ragspan_llama_index import RagspanCallbackHandler

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)


class OneAnswer(CustomLLM):
    """Your model, such as OpenAI("gpt-4o-mini") of llama-index-llms-openai."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="one-answer")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:  # noqa: ARG002  the framework's signature
        return CompletionResponse(text="Beta settles card payments after midnight.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Iterator[CompletionResponse]:
        yield self.complete(prompt)


Settings.llm = OneAnswer()
Settings.embed_model = MockEmbedding(8)  # your embedding
Settings.callback_manager = CallbackManager([RagspanCallbackHandler()])

documents = [
    Document(text="Beta settles card payments after midnight."),
    Document(text="Gamma sends invoices by registered mail."),
]
engine = VectorStoreIndex.from_documents(documents).as_query_engine()

answer = engine.query("When are card payments settled?")
print(answer)

ragspan.default_engine().flush(timeout=10)  # a server need not: scores follow in the background, and at exit
