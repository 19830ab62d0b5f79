"""Opik's tracer for LangChain, and its callback handler for LlamaIndex."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from peers.attachment import Attachment


def langchain(sink: str) -> Attachment:
    configure(sink)
    from opik.integrations.langchain import OpikTracer

    tracer = OpikTracer()
    return Attachment(handlers=[tracer], settle=tracer.flush)


def llama_index(sink: str) -> Attachment:
    configure(sink)
    from llama_index.core import Settings
    from opik import get_global_client
    from opik.integrations.llama_index import LlamaIndexCallbackHandler

    handler = LlamaIndexCallbackHandler()

    @contextlib.contextmanager
    def active() -> Iterator[None]:
        Settings.callback_manager.add_handler(handler)
        try:
            yield
        finally:
            Settings.callback_manager.remove_handler(handler)

    return Attachment(active=active, settle=get_global_client().flush)


def configure(sink: str) -> None:
    """It reads its settings when it is imported."""
    os.environ |= {
        "OPIK_URL_OVERRIDE": f"{sink}/api",
        "OPIK_SENTRY_ENABLE": "false",
        "OPIK_ANALYTICS_ENABLE": "false",
    }
