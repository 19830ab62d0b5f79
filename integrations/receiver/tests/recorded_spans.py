"""Spans of the real instrumentors as JSON, so that tests can read them without frameworks.

`python integrations/receiver/tests/recorded_spans.py NAME ...` records them anew, where what they need is installed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragspan_receiver.spans import SpanEvent, TracedSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

FOLDER = Path(__file__).with_name("recorded_spans")
QUESTION = "When does Beta settle payments?"
PASSAGES = ("Beta settles payments every night.", "Gamma sends invoices by mail.")
ANSWER = "Every night."
_DROPPED = ("embedding.", "exception.stacktrace", "llm.invocation_parameters.", "llm.tools.", "tool.json_schema")


def load(name: str) -> list[TracedSpan]:
    """The spans of one trace."""
    spans = json.loads((FOLDER / f"{name}.json").read_text())
    return [TracedSpan(**span | {"events": [SpanEvent(**event) for event in span["events"]]}) for span in spans]


def traced(span: ReadableSpan) -> TracedSpan:
    """What comes out of the receiver for a span of the SDK's."""
    assert span.context
    assert span.instrumentation_scope
    return TracedSpan(
        trace_id=format(span.context.trace_id, "032x"),
        span_id=format(span.context.span_id, "016x"),
        parent_id=None if span.parent is None else format(span.parent.span_id, "016x"),
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        attributes=_plain(span.attributes or {}),
        events=[
            SpanEvent(name=event.name, time_ns=event.timestamp, attributes=_plain(event.attributes or {}))
            for event in span.events
        ],
        status_error=not span.status.is_ok and span.status.status_code.name == "ERROR",
        status_message=span.status.description or "",
        scope=span.instrumentation_scope.name,
    )


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in attributes.items() if not key.startswith(_DROPPED)}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}


# The programs


def langchain(provider: TracerProvider) -> None:
    """A chain that retrieves, formats and answers, under OpenInference."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
    _langchain_chain().invoke(QUESTION, {"metadata": {"session_id": "s-1"}, "tags": ["docs"]})


def _langchain_chain() -> Any:
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough

    class Passages(BaseRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            return [Document(text, id=f"p{n}", metadata={"source": "atlas"}) for n, text in enumerate(PASSAGES)]

    class Model(GenericFakeChatModel):
        model: str = "scripted"

    prompt = ChatPromptTemplate.from_template("Context: {context}\n\nQuestion: {question}")
    context = Passages() | (lambda documents: documents[0].page_content)
    model = Model(messages=iter([AIMessage(ANSWER)]))
    return {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def llama_index(provider: TracerProvider) -> None:
    """A query engine, under OpenInference."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    _llama_index_engine().query(QUESTION)


def _llama_index_engine() -> Any:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    class Model(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="scripted")

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            return CompletionResponse(text=ANSWER)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            yield CompletionResponse(text=ANSWER, delta=ANSWER)

    class Passages(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            nodes = [TextNode(text=text, id_=f"p{n}", metadata={"source": "atlas"}) for n, text in enumerate(PASSAGES)]
            return [NodeWithScore(node=node, score=0.9 - n / 10) for n, node in enumerate(nodes)]

    return RetrieverQueryEngine.from_args(Passages(), llm=Model())


def haystack(provider: TracerProvider) -> None:
    """A pipeline with a retriever, a prompt and a chat generator, under OpenInference."""
    from haystack import Document, Pipeline, component
    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from openinference.instrumentation.haystack import HaystackInstrumentor

    @component
    class ScriptedChatGenerator:
        def __init__(self) -> None:
            component.set_input_types(self, messages=list[ChatMessage])

        @component.output_types(replies=list[ChatMessage])
        def run(self, **_: Any) -> dict[str, Any]:
            return {"replies": [ChatMessage.from_assistant(ANSWER)]}

    # The instrumentor looks for the class by its name in its module.
    globals()["ScriptedChatGenerator"] = ScriptedChatGenerator
    HaystackInstrumentor().instrument(tracer_provider=provider)
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=f"p{n}", content=text) for n, text in enumerate(PASSAGES)])
    template = "{% for one in documents %}{{ one.content }}\n{% endfor %}\nQuestion: {{ question }}"
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(template)], required_variables="*"))
    pipeline.add_component("model", ScriptedChatGenerator())
    pipeline.connect("retriever", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    pipeline.run({"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}})


def dspy(provider: TracerProvider) -> None:
    """A module that retrieves and predicts, under OpenInference."""
    import dspy as framework
    from openinference.instrumentation.dspy import DSPyInstrumentor

    DSPyInstrumentor().instrument(tracer_provider=provider)

    class Answering(framework.Module):
        def __init__(self) -> None:
            super().__init__()
            self.search = framework.Retrieve(k=2)
            self.answer = framework.Predict("context, question -> answer")

        def forward(self, question: str) -> Any:
            return self.answer(context=self.search(question).passages[:1], question=question)

    model = framework.utils.DummyLM([{"answer": ANSWER}])
    with framework.context(
        lm=model, rm=lambda query, k, **_: [framework.Example(long_text=text) for text in PASSAGES[:k]]
    ):
        Answering()(question=QUESTION)


def traceloop_langchain(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)
    _langchain_chain().invoke(QUESTION, {"metadata": {"session_id": "s-1"}})


def traceloop_llama_index(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    _llama_index_engine().query(QUESTION)


def opentelemetry_langchain(provider: TracerProvider) -> None:
    """It shows ids of documents, and no texts."""
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    LangChainInstrumentor().instrument(tracer_provider=provider)
    _langchain_chain().invoke(QUESTION)


PROGRAMS: dict[str, Callable[[Any], None]] = {
    f"openinference_{each.__name__}": each for each in (langchain, llama_index, haystack, dspy)
} | {each.__name__: each for each in (traceloop_langchain, traceloop_llama_index, opentelemetry_langchain)}


def record(name: str) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    PROGRAMS[name](provider)
    spans = [traced(span) for span in exporter.get_finished_spans()]
    shown = [asdict(span) for span in spans if span.attributes.get("openinference.span.kind") != "EMBEDDING"]
    (FOLDER / f"{name}.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        record(chosen)
