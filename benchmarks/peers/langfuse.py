"""Langfuse's handler for LangChain. For LlamaIndex its documentation has OpenInference's."""

from __future__ import annotations

from peers.attachment import Attachment


def langchain(sink: str) -> Attachment:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    client = Langfuse(base_url=sink, public_key="pk-lf-1", secret_key="sk-lf-1")
    return Attachment(handlers=[CallbackHandler()], settle=client.flush)
