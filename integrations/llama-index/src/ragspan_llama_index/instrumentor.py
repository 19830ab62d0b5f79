"""Attaches ragspan to every LlamaIndex call of the process, without a change in the program.

Loaded wherever the package is installed: the framework is imported when `instrument` is called, and only its small part
that dispatches spans.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import requires
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # the package is not typed

from ragspan.config import is_enabled

_DISTRIBUTION = "ragspan-llama-index"


class RagspanLlamaIndexInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # as above
    """Captures every LlamaIndex request of the process: `RagspanLlamaIndexInstrumentor().instrument()`.

    `opentelemetry-instrument python app.py` finds it by its entry point. `instrument(sink=...)` takes a sink, else the
    answers go to `ragspan.default_engine()`. A handler of the same sink makes no second record.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """What `opentelemetry-instrument` checks; read from the distribution, so that it cannot differ from it."""
        extra = '; extra == "instruments"'
        wanted = [line for line in requires(_DISTRIBUTION) or [] if line.replace("'", '"').endswith(extra)]
        return [line.rsplit(";", 1)[0].strip() for line in wanted]

    def _instrument(self, **kwargs: Any) -> None:
        if not is_enabled():
            return
        from ragspan.defaults import sink_or_default
        from ragspan_llama_index.attaching import attach

        attach(self, sink_or_default(kwargs.get("sink")))

    def _uninstrument(self, **_: Any) -> None:
        from ragspan_llama_index.attaching import detach

        detach(self)
