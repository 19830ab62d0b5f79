"""DeepEval's handlers, with a key of Confident AI, without which nothing is exported."""

from __future__ import annotations

import os

from peers.attachment import Attachment

_PATIENCE = 30.0


def langchain(sink: str) -> Attachment:
    configure(sink)
    from deepeval.integrations.langchain import CallbackHandler

    return Attachment(handlers=[CallbackHandler()], settle=settle)


def llama_index(sink: str) -> Attachment:
    configure(sink)
    from deepeval.integrations.llama_index import instrument_llama_index
    from llama_index_instrumentation import get_dispatcher

    from peers.dispatcher import attached_by

    return attached_by(lambda: instrument_llama_index(get_dispatcher()), settle=settle)


def configure(sink: str) -> None:
    """It reads its settings when it is imported."""
    os.environ |= {
        "CONFIDENT_API_KEY": "confident_us_1",
        "CONFIDENT_BASE_URL": sink,
        "CONFIDENT_TRACE_VERBOSE": "0",
        "CONFIDENT_TRACE_FLUSH": "1",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "ERROR_REPORTING": "0",
    }


def settle() -> None:
    """Wait for the worker, which sends five traces a second and no more: here it need not wait between them."""
    from deepeval.tracing.tracing import trace_manager

    trace_manager._min_interval = 0.0  # noqa: SLF001 - there is no setting; the work for each trace stays the same
    trace_manager.flush(_PATIENCE)
