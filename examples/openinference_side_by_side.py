"""An application that OpenInference traces already: python examples/openinference_side_by_side.py.

OpenInference draws the chain, its searches and its model calls. ragspan adds the scores below the chain's span, and draws
nothing a second time: OTelEmitter(spans="scores"), or RAGSPAN_SPANS=scores without a line of code.
"""

from collections.abc import Sequence
from itertools import repeat

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan_langchain import RagspanCallbackHandler

exporter = InMemorySpanExporter()  # yours sends spans to Phoenix, or wherever they go
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))

# Both get the same provider: scores belong where the spans are that they are about.
LangChainInstrumentor().instrument(tracer_provider=provider)
judge = OverlapJudge()
engine = ScoringEngine(
    metrics=[ContextAdherence(judge), Faithfulness(judge)],
    emitters=[OTelEmitter(spans="scores", tracer_provider=provider)],
)


class Payments(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:  # noqa: ARG002  it knows one passage
        return [Document("Beta settles card payments after midnight.")]


model = GenericFakeChatModel(messages=repeat(AIMessage("Beta settles card payments after midnight.")))  # your model
prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
chain = {"context": Payments(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

chain.with_config(run_name="payments").invoke(
    "When are card payments settled?", config={"callbacks": [RagspanCallbackHandler(sink=engine)]}
)
engine.flush(timeout=10)


def show(spans: Sequence[ReadableSpan], parent: int | None = None, indent: str = "") -> None:
    """Print the spans below a span as a tree, with the library that made each."""
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        if (span.parent.span_id if span.parent else None) == parent:
            scores = {
                name: value for name, value in (span.attributes or {}).items() if name.startswith("ragspan.score.")
            }
            scope = span.instrumentation_scope.name if span.instrumentation_scope else ""
            print(
                f"{indent}{span.name:<{44 - len(indent)}} {scope.removesuffix('.instrumentation.langchain'):<14}",
                *scores.values(),
            )
            show(spans, span.context.span_id if span.context else None, indent + "  ")


show(exporter.get_finished_spans())
engine.shutdown(timeout=10)
