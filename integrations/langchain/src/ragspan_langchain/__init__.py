"""ragspan for LangChain and LangGraph."""

from __future__ import annotations

from ragspan_langchain.handler import RagspanCallbackHandler
from ragspan_langchain.instrumentor import RagspanLangChainInstrumentor

__all__ = ["RagspanCallbackHandler", "RagspanLangChainInstrumentor"]
