"""ragspan for LlamaIndex."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragspan_llama_index.chat_client import LlamaIndexChatClient
    from ragspan_llama_index.handler import RagspanCallbackHandler
    from ragspan_llama_index.instrumentor import RagspanLlamaIndexInstrumentor

__all__ = ["LlamaIndexChatClient", "RagspanCallbackHandler", "RagspanLlamaIndexInstrumentor"]

# The framework takes seconds to import, and the instrumentor is loaded in processes that never use it.
_HOMES = dict(zip(__all__, ("chat_client", "handler", "instrumentor"), strict=True))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
