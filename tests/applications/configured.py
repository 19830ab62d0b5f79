"""An application whose only line about scores is `ragspan.configure`.

The program's first argument is a JSON list with the arguments of each call, and variables to be set before it.
"""

import json
import os
import sys

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import ragspan

if "own-provider" in sys.argv:
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Beta settles card payments after midnight."), Document("Gamma sends invoices by mail.")]


prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["Beta settles card payments after midnight.", "Delta prints 400 banknotes."])
chain = {"context": Archive(), "question": RunnablePassthrough()} | prompt | model
chain = chain.with_config(run_name="payments")

for arguments in json.loads(sys.argv[1]):
    os.environ.update(arguments.pop("environment", {}))
    configured = ragspan.configure(**arguments)
    chain.invoke("When are card payments settled?")
if "flush" in sys.argv:
    assert configured.flush(timeout=60)
if "shutdown" in sys.argv:
    configured.shutdown(timeout=20)
    chain.invoke("Who prints banknotes?")
