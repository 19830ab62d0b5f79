"""A LangChain chain whose answers are scored on their own traces: python examples/langchain_rag.py.

The spans are printed. For a tracing tool, replace the exporter, for instance by OTLPSpanExporter().
"""

from itertools import repeat

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import ragspan
from ragspan_langchain import RagspanCallbackHandler

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)

documents = [
    Document("Beta settles card payments after midnight."),
    Document("Gamma sends invoices by registered mail."),
]


def search(_: str) -> list[Document]:  # your retriever
    return documents


model = GenericFakeChatModel(messages=repeat(AIMessage("Beta settles card payments after midnight.")))  # your model
prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")


def joined(found: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in found)


chain = (
    {"context": RunnableLambda(search) | joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
)

answer = chain.invoke("When are card payments settled?", config={"callbacks": [RagspanCallbackHandler()]})
print(answer)

ragspan.default_engine().flush(timeout=10)  # a server need not: scores follow in the background, and at exit
