"""What a reader of the documentation has already: documents, a chain of LangChain, and a query engine of LlamaIndex."""

from __future__ import annotations

from itertools import repeat

RESPONSE = "Card payments settle within two days."
question = "When do card payments settle?"
texts = ["Card payments settle within two days.", "Invoices are due after thirty days."]


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
