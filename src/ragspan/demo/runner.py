"""Runs the demo: an application with tracing, frameworks with the handler attached, and what came out of it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from rich.console import Console

from ragspan.config import Settings
from ragspan.defaults import default_engine
from ragspan.demo.corpus import Passage, documentation
from ragspan.demo.picture import draw
from ragspan.demo.report import Session, summary, trace_trees
from ragspan.demo.script import SCRIPT, AnsweringFramework
from ragspan.exceptions import ConfigurationError

_GROUP = "ragspan_demo"
_FLUSH_SECONDS = 120.0
_MAX_ERROR = 300  # characters


class KeptSpans(SpanExporter):
    """Keeps spans, to show them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS

    def take(self) -> list[ReadableSpan]:
        """The spans since the last call."""
        taken, self.spans = self.spans, []
        return taken


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


def frameworks() -> dict[str, importlib.metadata.EntryPoint]:
    """The installed integrations that can answer, by name."""
    return {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}


def run_demo(
    console: Console,
    *,
    framework: str | None = None,
    model: str | None = None,
    otlp: str | None = None,
    picture: Path | None = None,
) -> bool:
    """Answer every question, show the traces and the scores; False if spans could not be sent.

    Raises:
        ConfigurationError: an argument or a `RAGSPAN_*` variable is wrong, or something is not installed.
    """
    judge = Settings.from_environment().judge
    chosen = _chosen_frameworks(framework)
    exporter = CountedExporter(_otlp_exporter(otlp)) if otlp else None
    kept = _trace_application(exporter)
    passages = documentation()
    console.print(f"Loading {' and '.join(chosen)} …")
    loaded = _load(chosen, passages, model)
    sessions = []
    for name, answering in loaded.items():
        console.print(f"\nAsking {name} about ragspan's own documentation ({len(passages)} passages) …")
        with _told_in_one_line(name, model):
            answers = _ask_everything(name, answering)
        default_engine().flush(_FLUSH_SECONDS)
        sessions.append(Session(framework=name, spans=kept.take(), answers=answers))
        _show_traces(console, sessions[-1])
    _sum_up(console, sessions, judge=judge)
    if picture is not None:
        picture.write_text(draw(sessions, judge=judge), encoding="utf-8")
    return _tell_next(console, otlp, exporter)


def _chosen_frameworks(name: str | None) -> dict[str, importlib.metadata.EntryPoint]:
    installed = frameworks()
    if not installed:
        raise ConfigurationError(
            "no framework is installed that could answer: pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
        )
    if name is not None and name not in installed:
        raise ConfigurationError(f"--framework is {name!r}, but should be one of: {', '.join(sorted(installed))}")
    return {key: installed[key] for key in ([name] if name else sorted(installed))}


def _load(
    chosen: Mapping[str, importlib.metadata.EntryPoint], passages: Sequence[Passage], model: str | None
) -> dict[str, AnsweringFramework]:
    """All of them before the first is asked, so that what one lacks is told at once."""
    loaded: dict[str, AnsweringFramework] = {}
    for name, point in chosen.items():
        with _told_in_one_line(name, model):
            loaded[name] = point.load()(passages=passages, model=model)
    return loaded


@contextlib.contextmanager
def _told_in_one_line(framework: str, model: str | None) -> Iterator[None]:
    """A real model may have no key, or be out of reach: that is for the user to see, without a traceback."""
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:
        if model is None:
            raise
        words = f"{type(error).__name__}: {error}"[:_MAX_ERROR]
        raise ConfigurationError(f"{framework} gets no answer from {model}: {words}") from error


def _trace_application(exporter: SpanExporter | None) -> KeptSpans:
    """Set tracing up as an application does."""
    kept = KeptSpans()
    provider = TracerProvider(resource=Resource.create({"service.name": "ragspan-demo"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return kept


def _otlp_exporter(url: str) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError("--otlp needs the OTLP exporter: pip install 'ragspan[otlp]'") from error
    endpoint = url.rstrip("/")
    return OTLPSpanExporter(endpoint=endpoint if endpoint.endswith("/v1/traces") else f"{endpoint}/v1/traces")


def _ask_everything(framework: str, answering: AnsweringFramework) -> dict[int, list[str]]:
    """Ask as an application does, in a span of its own; returns what it got by that span's id."""
    answers = {}
    tracer = trace.get_tracer("ragspan.demo")
    for asked in SCRIPT:
        title = asked.questions[0] if len(asked.questions) == 1 else f"{len(asked.questions)} questions at once"
        with tracer.start_as_current_span(f"{title} ({framework}, {asked.way.value})") as span:
            answers[span.get_span_context().span_id] = answering.answer(asked)
    return answers


def _show_traces(console: Console, session: Session) -> None:
    for tree in trace_trees(session):
        console.print()
        console.print(tree)


def _sum_up(console: Console, sessions: Sequence[Session], *, judge: str) -> None:
    console.print()
    console.print(summary(sessions, judge=judge))
    if judge == "overlap":
        console.print(
            "The overlap judge compares words: no model, no key, nothing leaves this machine.", soft_wrap=True
        )
        console.print(
            "For an LLM judge: RAGSPAN_JUDGE=openai:gpt-4o-mini OPENAI_API_KEY=… ragspan demo", soft_wrap=True
        )


def _tell_next(console: Console, otlp: str | None, exporter: CountedExporter | None) -> bool:
    console.print()
    if exporter is None:
        console.print("Next, with any OTLP endpoint (Jaeger, Tempo, Phoenix, a collector):")
        console.print("  ragspan demo --otlp http://localhost:4318", soft_wrap=True)
        return True
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.force_flush()
    if exporter.failed or not exporter.sent:
        console.print(
            f"{exporter.failed} spans could not be sent to {otlp}: is something listening there?", soft_wrap=True
        )
        return False
    console.print(f"Sent {exporter.sent} spans to {otlp}; look for the service ragspan-demo.", soft_wrap=True)
    return True
