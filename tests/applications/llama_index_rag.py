"""A traced LlamaIndex application that knows nothing of ragspan."""

from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))

Settings.llm = MockLLM()  # it answers with the prompt
Settings.embed_model = MockEmbedding(embed_dim=8)
index = VectorStoreIndex([TextNode(text="Beta settles card payments after midnight.")])
index.as_query_engine().query("When are card payments settled?")
