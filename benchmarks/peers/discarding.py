"""ragspan's handler alone: what it submits is thrown away."""

from __future__ import annotations

from interleaved import CountingSink

from peers.attachment import Attachment


def langchain(_: str) -> Attachment:
    from ragspan_langchain import RagspanCallbackHandler

    return Attachment(handlers=[RagspanCallbackHandler(sink=CountingSink())])


def llama_index(_: str) -> Attachment:
    from peers.dispatcher import attached_by
    from ragspan_llama_index import RagspanCallbackHandler

    return attached_by(lambda: RagspanCallbackHandler(sink=CountingSink()), settle=lambda: None)
