"""ragspan for LangChain and LangGraph."""

from __future__ import annotations

from ragspan.capturing import add_context_recorder
from ragspan_langchain.chat_client import LangChainChatClient
from ragspan_langchain.handler import RagspanCallbackHandler, RagspanLangChainInstrumentor, record_contexts_of_run
from ragspan_langchain.inline import leave_others_alone

__all__ = ["LangChainChatClient", "RagspanCallbackHandler", "RagspanLangChainInstrumentor"]

add_context_recorder(record_contexts_of_run)
leave_others_alone()
