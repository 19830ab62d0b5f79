"""An application whose only line about scores is `ragspan.configure`.

The program's first argument is JSON, with the arguments of the call.
"""

import json
import sys

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

import ragspan


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Beta settles card payments after midnight."), Document("Gamma sends invoices by mail.")]


prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["Beta settles card payments after midnight.", "Delta prints 400 banknotes."])
chain = {"context": Archive(), "question": RunnablePassthrough()} | prompt | model
chain = chain.with_config(run_name="payments")

ragspan.configure(**json.loads(sys.argv[1]))
chain.invoke("When are card payments settled?")
