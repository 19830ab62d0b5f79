"""Attaches the handler to every LangChain call of the process, without a change in the program.

LangChain itself asks registered context variables for handlers whenever it configures a call; nothing is patched. There
is no way to take a registration back, so it is made once, and the handler is switched off and on.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from importlib.metadata import requires
from typing import Any

from langchain_core.tracers.context import register_configure_hook
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # the package is not typed

from ragspan.config import is_enabled
from ragspan_langchain.handler import RagspanCallbackHandler

_DISTRIBUTION = "ragspan-langchain"
_handler: RagspanCallbackHandler | None = None


class RagspanLangChainInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # as above
    """Captures every LangChain request of the process: `RagspanLangChainInstrumentor().instrument()`.

    `opentelemetry-instrument python app.py` finds it by its entry point. `instrument(sink=...)` takes a sink, else the
    answers go to `ragspan.default_engine()`. A handler of the same sink that is passed explicitly makes no second
    record.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """What `opentelemetry-instrument` checks; read from the distribution, so that it cannot differ from it."""
        extra = '; extra == "instruments"'
        wanted = [line for line in requires(_DISTRIBUTION) or [] if line.replace("'", '"').endswith(extra)]
        return [line.rsplit(";", 1)[0].strip() for line in wanted]

    def _instrument(self, **kwargs: Any) -> None:
        global _handler  # noqa: PLW0603  one registration per process
        handler = RagspanCallbackHandler(sink=kwargs.get("sink"))
        if _handler is None:
            _handler = handler
            # A default is seen in every context, plain threads included; a value that was set would not be.
            variable: ContextVar[RagspanCallbackHandler | None] = ContextVar(
                "ragspan_langchain_handler", default=handler
            )
            register_configure_hook(variable, inheritable=True)
        else:
            _handler.recorder = handler.recorder
            _handler.enable(enabled=is_enabled())

    def _uninstrument(self, **_: Any) -> None:
        if _handler is not None:
            _handler.enable(enabled=False)
