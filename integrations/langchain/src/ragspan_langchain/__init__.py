"""ragspan for LangChain and LangGraph."""

from ragspan.capturing import add_context_recorder
from ragspan_langchain.chat_client import LangChainChatClient
from ragspan_langchain.handler import RagspanCallbackHandler, RagspanLangChainInstrumentor, record_contexts_of_run

__all__ = ["LangChainChatClient", "RagspanCallbackHandler", "RagspanLangChainInstrumentor"]

add_context_recorder(record_contexts_of_run)
