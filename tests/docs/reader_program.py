"""What a reader of the documentation has already: documents, a chain of LangChain, a query engine of LlamaIndex, models."""

from __future__ import annotations

import re
from itertools import repeat

RESPONSE = "Card payments settle within two days."
question = "When do card payments settle?"
texts = documents = contexts = ["Card payments settle within two days.", "Invoices are due after thirty days."]


def my_model(*_):
    return RESPONSE


def make_chain(*, model=None):
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough

    class Archive(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(text) for text in texts]

    prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
    model = model or GenericFakeChatModel(messages=repeat(AIMessage(RESPONSE)))
    chain = {"context": Archive(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    return chain.with_config(run_name="support")


def make_index():
    from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback

    class OneAnswer(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="one-answer")

        @llm_completion_callback()
        def complete(self, prompt, **_):
            return CompletionResponse(text=RESPONSE)

        @llm_completion_callback()
        def stream_complete(self, prompt, **_):
            yield self.complete(prompt)

    Settings.llm = OneAnswer()
    Settings.embed_model = MockEmbedding(8)
    return VectorStoreIndex.from_documents([Document(text=text) for text in texts])


def make_chat_model():
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    make_index()  # sets LlamaIndex's own model
    return FakeListChatModel(responses=["fine"])


MADE = {"chain": make_chain, "query_engine": lambda: make_index().as_query_engine(), "chat_model": make_chat_model}


def names_for(text):
    """What this program may name; only what it does name is made."""
    made = {name: make() for name, make in MADE.items() if re.search(rf"\b{name}\b", text)}
    return made | {name: globals()[name] for name in ("question", "texts", "documents", "contexts", "my_model")}
