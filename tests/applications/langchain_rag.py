"""A traced LangChain application that knows nothing of ragspan."""

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Beta settles card payments after midnight.")]


prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["Beta settles card payments after midnight."])
context = Archive() | (lambda found: found[0].page_content)
({"context": context, "question": RunnablePassthrough()} | prompt | model).invoke("When are card payments settled?")
