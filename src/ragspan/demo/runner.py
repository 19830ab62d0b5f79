"""Runs the demo: an application with tracing, frameworks with ragspan attached, and what came out of it."""

from __future__ import annotations

import importlib.metadata
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from rich.console import Console
from rich.text import Text

from ragspan.config import Settings
from ragspan.defaults import emitters_from, engine_from, set_default_engine
from ragspan.demo.report import draw, legend, shown_answer
from ragspan.demo.script import SCRIPT, AnsweringFramework
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.testing import RecordingEmitter

_GROUP = "ragspan_demo"
_FLUSH_SECONDS = 120.0
_DRAWN = 4  # answers in the picture: one of each kind


class CountedExporter(SpanExporter):
    """Passes spans on and counts how many arrived."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.sent = 0
        self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        with self._lock:
            if result is SpanExportResult.SUCCESS:
                self.sent += len(spans)
            else:
                self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


def run_demo(
    console: Console, *, framework: str | None = None, otlp: str | None = None, picture: Path | None = None
) -> bool:
    """Answer every question and show the answers with their scores; False if spans could not be sent.

    Raises:
        ConfigurationError: an argument or a `RAGSPAN_*` variable is wrong, or something is not installed.
    """
    settings = Settings.from_environment()
    chosen = _chosen_frameworks(framework)
    exporter = CountedExporter(_otlp_exporter(otlp)) if otlp else None
    provider = TracerProvider(resource=Resource.create({"service.name": "ragspan-demo"}))
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    answers, explained = _answers(chosen, settings), [*legend(settings.judge)]
    for line in [line for answer in answers for line in answer] + explained:
        console.print(line, no_wrap=True, overflow="ellipsis")
    if picture is not None:
        drawn = [line for answer in answers[:_DRAWN] for line in answer] + explained
        picture.write_text(draw(drawn), encoding="utf-8")
    return _tell_next(console, otlp, exporter, provider)


def _chosen_frameworks(name: str | None) -> dict[str, importlib.metadata.EntryPoint]:
    installed = {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}
    if not installed:
        raise ConfigurationError(
            "no framework is installed that could answer: pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
        )
    if name is not None and name not in installed:
        raise ConfigurationError(f"--framework is {name!r}, but should be one of: {', '.join(sorted(installed))}")
    return {key: installed[key] for key in ([name] if name else sorted(installed))}


def _otlp_exporter(url: str) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError("--otlp needs the OTLP exporter: pip install 'ragspan[otlp]'") from error
    endpoint = url.rstrip("/")
    return OTLPSpanExporter(endpoint=endpoint if endpoint.endswith("/v1/traces") else f"{endpoint}/v1/traces")


def _answers(chosen: Mapping[str, importlib.metadata.EntryPoint], settings: Settings) -> list[list[Text]]:
    """Ask as an application does, in a span for each request, and say what came of it."""
    emitter = RecordingEmitter(score_wait=settings.score_wait)
    engine = engine_from(settings, emitters=[*emitters_from(settings), emitter])
    set_default_engine(engine)
    frameworks: dict[str, AnsweringFramework] = {name: point.load()() for name, point in chosen.items()}
    tracer = trace.get_tracer("ragspan.demo")
    asked = [one for one in SCRIPT if one.framework in frameworks]
    got = []
    for one in asked:
        with tracer.start_as_current_span(one.title) as span:
            got.append((span.get_span_context().trace_id, frameworks[one.framework].answer(one)))
    engine.flush(_FLUSH_SECONDS)
    scored: dict[int, list[ScoredRecord]] = defaultdict(list)
    for part in emitter.scored:
        if part.record.parent is not None:
            scored[part.record.parent.trace_id].append(part)
    return [
        [*shown_answer(number, one, response, scored[trace_id]), Text()]
        for number, (one, (trace_id, response)) in enumerate(zip(asked, got, strict=True), start=1)
    ]


def _tell_next(console: Console, otlp: str | None, exporter: CountedExporter | None, provider: TracerProvider) -> bool:
    if exporter is None:
        console.print("The same as spans: ragspan demo --otlp http://localhost:4318", soft_wrap=True)
        return True
    provider.force_flush()
    if exporter.failed or not exporter.sent:
        console.print(
            f"{exporter.failed} spans could not be sent to {otlp}: is something listening there?", soft_wrap=True
        )
        return False
    console.print(f"Sent {exporter.sent} spans to {otlp}; look for the service ragspan-demo.", soft_wrap=True)
    return True
