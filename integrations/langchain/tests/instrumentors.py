"""Other people's instrumentations of LangChain as listeners, those that are installed: what they hear are their spans."""

from __future__ import annotations

import functools
import json
from importlib.util import find_spec
from typing import Any

from listeners import Listener, plain
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

_KEY = "pk-lf-local"


class Spans(Listener):
    """Handlers that make spans of what they hear."""

    def __init__(self, make: Any) -> None:
        self._provider, self._exporter = _destination(make)
        super().__init__(make(self._provider))

    def heard(self) -> list[str]:
        self._provider.force_flush()
        spans = self._exporter.get_finished_spans()
        names = {span.context.span_id: span.name for span in spans}
        lines = [_line(span, names.get(span.parent.span_id) if span.parent else None) for span in spans]
        self._exporter.clear()
        return sorted(lines)


@functools.cache
def _destination(_: Any) -> tuple[TracerProvider, InMemorySpanExporter]:
    """Where the spans of all handlers of one kind go: Langfuse keeps the first that it is given."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def _line(span: Any, parent: str | None) -> str:
    """A span with what it says, but for when it was."""
    events = [(event.name, sorted(event.attributes or ())) for event in span.events]
    about = {name: _value(value) for name, value in (span.attributes or {}).items()}
    return f"{parent}/{span.name} {span.status.status_code.name} {plain(about)} {plain(events)}"


def _value(value: Any) -> Any:
    """JSON as what it holds: the order of keys is no matter."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _openinference(provider: TracerProvider) -> Any:
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.langchain._tracer import OpenInferenceTracer

    tracer = OITracer(provider.get_tracer("openinference"), config=TraceConfig())
    return OpenInferenceTracer(tracer, separate_trace_from_runtime_context=False)


def _langfuse(provider: TracerProvider) -> Any:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    Langfuse(
        public_key=_KEY,
        secret_key="sk-lf-local",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=InMemorySpanExporter(),  # its own one, so that nothing is sent
        flush_at=1,
    )
    return CallbackHandler(public_key=_KEY)


def _openllmetry(provider: TracerProvider) -> Any:
    from opentelemetry.instrumentation.langchain.callback_handler import TraceloopCallbackHandler
    from opentelemetry.metrics import NoOpMeter

    meter = NoOpMeter("traceloop")
    tracer = provider.get_tracer("traceloop")
    return TraceloopCallbackHandler(tracer, meter.create_histogram("duration"), meter.create_histogram("tokens"))


_KNOWN = {
    "OpenInference": ("openinference.instrumentation.langchain", _openinference),
    "Langfuse": ("langfuse", _langfuse),
    "OpenLLMetry": ("opentelemetry.instrumentation.langchain", _openllmetry),
}


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


INSTRUMENTORS = {name: make for name, (module, make) in _KNOWN.items() if _is_installed(module)}
"""How to make the handler of each, by its name."""
