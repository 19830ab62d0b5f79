"""Scores in Phoenix, as annotations that it filters and averages: python examples/phoenix_server.py [URL].

Start Phoenix first, from a virtual environment of its own, for it brings many packages:

    pip install arize-phoenix
    PHOENIX_TELEMETRY_ENABLED=false phoenix serve     # http://127.0.0.1:6006

Then look at the project "ragspan" there, and filter for: annotations['faithfulness'].label == 'fail'
"""

import sys

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.tools.phoenix import PhoenixEmitter
from ragspan.tools.spans import RetryingSpanExporter
from ragspan_langchain import RagspanCallbackHandler

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:6006"

# The answers' spans and their scores go to the same Phoenix, and both are kept while it is away.
provider = TracerProvider(resource=Resource.create({"openinference.project.name": "ragspan"}))
provider.add_span_processor(
    BatchSpanProcessor(RetryingSpanExporter(OTLPSpanExporter(f"{URL}/v1/traces"), exit_timeout=1.0))
)
phoenix = PhoenixEmitter(base_url=URL, capture_content=True)

judge = OverlapJudge()  # embedded; OpenAIJudge("gpt-4o-mini") is the LLM judge
engine = ScoringEngine(
    metrics=[ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)],
    emitters=[OTelEmitter(tracer_provider=provider, capture_content=True), phoenix],
)
handler = RagspanCallbackHandler(sink=engine)


class Payments(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:  # noqa: ARG002  it knows two passages
        return [
            Document("Beta settles card payments after midnight."),
            Document("Gamma sends invoices by registered mail."),
        ]


model = GenericFakeChatModel(  # your model, which is wrong the second time
    messages=iter(
        [
            AIMessage("Beta settles card payments after midnight."),
            AIMessage("Delta prints 400 banknotes an hour in Zurich."),
        ]
    )
)
prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
chain = {"context": Payments(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

for question in ("When are card payments settled?", "Who prints banknotes?"):
    print(chain.with_config(run_name="payments").invoke(question, config={"callbacks": [handler]}))

engine.flush(timeout=5)  # a server need not: scores follow in the background, and at exit
stats = phoenix.stats()
print(f"{stats.delivered} annotations are in Phoenix, {stats.waiting} wait for it")
if stats.waiting:
    print(f"Phoenix could not be reached at {URL}")
engine.shutdown(timeout=1)
