"""OpenInference's instrumentors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from peers.attachment import Attachment
from peers.open_telemetry import provider


def langchain(sink: str) -> Attachment:
    """It puts its tracer into every callback manager, as long as it is on."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    tracer_provider = provider(sink)

    @contextlib.contextmanager
    def instrumented() -> Iterator[None]:
        instrumentor = LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=tracer_provider)
        try:
            yield
        finally:
            instrumentor.uninstrument()

    return Attachment(active=instrumented, settle=tracer_provider.force_flush)


def llama_index(sink: str) -> Attachment:
    """Its span handler is given to each run, its event handler switched on around them."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    from peers.dispatcher import attached_by

    tracer_provider = provider(sink)

    def instrument() -> Any:
        return LlamaIndexInstrumentor().instrument(tracer_provider=tracer_provider)

    return attached_by(instrument, settle=tracer_provider.force_flush)
