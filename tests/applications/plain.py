"""A LangChain program that knows nothing of ragspan, nor of OpenTelemetry."""

import sys
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Beta settles card payments after midnight.")]


prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["Beta settles card payments after midnight."])
chain = {"context": Archive(), "question": RunnablePassthrough()} | prompt | model
chain.with_config(run_name="payments").invoke("When are card payments settled?")
sys.stdout.write(f"{__name__} {[Path(sys.argv[0]).name, *sys.argv[1:]]}\n")
