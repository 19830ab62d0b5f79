"""Scores in MLflow, as assessments: a column each in the table of traces: python examples/mlflow_server.py [URL].

Start MLflow first, from a virtual environment of its own; spans by OTLP need an SQL store:

    pip install "mlflow>=3.6"
    MLFLOW_DISABLE_TELEMETRY=true mlflow server --backend-store-uri sqlite:///mlflow.db     # http://127.0.0.1:5000

Then look at the experiment "ragspan" there, and filter for: feedback.faithfulness = 'fail'
"""

import sys
from collections.abc import Iterator
from typing import Any

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.tools.mlflow import MLflowEmitter
from ragspan_llama_index import RagspanCallbackHandler

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:5000"

# The answers' spans and their scores go to the same server, and both are kept while it is away.
mlflow = MLflowEmitter(tracking_uri=URL, experiment="ragspan", capture_content=True)
provider = TracerProvider(shutdown_on_exit=False)  # it would try for ten seconds more; a server should leave that out
provider.add_span_processor(BatchSpanProcessor(mlflow.span_exporter()))

judge = OverlapJudge()  # embedded; OpenAIJudge("gpt-4o-mini") is the LLM judge
engine = ScoringEngine(
    metrics=[ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)],
    emitters=[OTelEmitter(tracer_provider=provider, capture_content=True), mlflow],
)
RagspanCallbackHandler(sink=engine)  # attaches itself


class RightAndWrong(CustomLLM):
    """Your model, such as OpenAI("gpt-4o-mini") of llama-index-llms-openai; this one knows about payments only."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="right-and-wrong")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        if "Query: When are card payments settled?" in prompt:
            return CompletionResponse(text="Beta settles card payments after midnight.")
        return CompletionResponse(text="Delta prints 400 banknotes an hour in Zurich.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> Iterator[CompletionResponse]:
        yield self.complete(prompt)


documents = [
    Document(text="Beta settles card payments after midnight."),
    Document(text="Gamma sends invoices by registered mail."),
]
index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8))  # your embedding
query_engine = index.as_query_engine(llm=RightAndWrong())

for question in ("When are card payments settled?", "Who prints banknotes?"):
    print(query_engine.query(question))

engine.flush(timeout=5)  # a server need not: scores follow in the background, and at exit
stats = mlflow.stats()
print(f"{stats.delivered} assessments are in MLflow, {stats.waiting} wait for it")
if stats.waiting:
    print(f"MLflow could not be reached at {URL}")
engine.shutdown(timeout=1)
