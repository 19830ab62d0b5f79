"""Sends one record through everything that the application would use, and notes what happens on its way.

An exporter reports success also for a redirect, which it does not follow, for a web page, and for spans that the receiver
rejects. So the endpoint's own reply is kept beside what the exporter says.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from ragspan.config import Settings, process_environment
from ragspan.defaults import emitter_from, engine_from
from ragspan.delivery import DeliveryStats, ScoreWriter
from ragspan.engine import Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.environment import (
    EnvironmentProviders,
    Signal,
    endpoint,
    exporter_is_configured,
    providers_from_environment,
)

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

NAME = "ragspan doctor"
TRACES = 1000  # of which a sampler is asked how many it keeps
_SCORING, _FLUSHING, _SENDING, _SHUTTING_DOWN = 0.5, 0.35, 0.25, 0.05  # shares of the time
_KEPT_LINES = 20  # of the log


@dataclass(kw_only=True, slots=True)
class Exchange:
    """What an OTLP exporter sent, and what came of it."""

    signal: Signal
    url: str
    is_grpc: bool
    proxy: str | None = None
    reply: requests.Response | None = None
    """The last one; None also where replies cannot be seen, as with gRPC."""
    error: BaseException | None = None
    """Of the last request without a reply."""
    successes: list[bool] = field(default_factory=list)
    """What the exporter says of each batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRecord:
    """What became of the record."""

    record: RagRecord
    root: SpanAnchor
    share: float
    """Of all traces, the part that the sampler keeps. This record's trace is kept in any case."""
    result: ScoredRecord | Dropped | None
    """None if it was not scored in time."""
    seconds: float
    """That scoring took."""
    spans: Sequence[ReadableSpan]
    exchanges: Sequence[Exchange]
    """One for each signal that is exported by OTLP."""
    written: Mapping[str, DeliveryStats]
    """What became of the scores at backends with scores of their own, by the writer's name and address."""
    complaints: Sequence[str]
    """What was logged on the way."""


def watch_record(settings: Settings, seconds: float) -> WatchedRecord:
    """Have one record scored and its span exported, as with these settings, within `seconds`.

    Raises:
        ConfigurationError: the application would not start.
    """
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exchanges: list[Exchange] = []
    kept = InMemorySpanExporter()
    with captured_logs() as complaints, _providers(exchanges, seconds) as providers:
        providers.tracer_provider.add_span_processor(SimpleSpanProcessor(kept))
        share, root = _root(providers.tracer_provider)
        record = new_record(root)
        usable = _without_limits(settings, seconds)
        emitters = [emitter_from(name, usable, providers) for name in settings.emitters if name != "console"]
        writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        if not exporter_is_configured():  # writers would wait for the span
            emitters, writers = [emitter for emitter in emitters if emitter not in writers], []
        engine = engine_from(usable, providers, emitters=emitters)
        began = time.monotonic()
        result = score_in_time(engine, record, seconds * _SCORING * 1.1)
        scored_in = time.monotonic() - began
        engine.flush(seconds * _FLUSHING)
        written = {f"{writer.name} at {writer.client.endpoint.url}": writer.stats() for writer in writers}
        engine.shutdown(seconds * _SHUTTING_DOWN)
    return WatchedRecord(
        record=record,
        root=root,
        share=share,
        result=result,
        seconds=scored_in,
        spans=kept.get_finished_spans(),
        exchanges=exchanges,
        written=written,
        complaints=tuple(complaints),
    )


def score_in_time(engine: ScoringEngine, record: RagRecord, seconds: float) -> ScoredRecord | Dropped | None:
    """What becomes of the record; None if nothing does within `seconds`."""

    async def score() -> ScoredRecord | Dropped:
        return await asyncio.wait_for(engine.score(record, sample=False), seconds)

    try:
        return asyncio.run(score())
    except asyncio.TimeoutError:
        return None


def new_record(parent: SpanAnchor | None = None) -> RagRecord:
    """A record with a response that its context states word for word."""
    return RagRecord(
        question="Does ragspan work here?",
        contexts=["The doctor sends one record. It is scored like every other record, and its scores go on its span."],
        response="The doctor's record is scored like every other record.",
        name=NAME,
        parent=parent,
    )


def _without_limits(settings: Settings, seconds: float) -> Settings:
    """The application's settings, but without what would hide the record from this process."""
    return dataclasses.replace(
        settings,
        export="application",
        max_records_per_second=None,
        metric_timeout=min(settings.metric_timeout, seconds * _SCORING),
        exit_timeout=min(settings.exit_timeout, seconds),
    )


@contextlib.contextmanager
def _providers(exchanges: list[Exchange], seconds: float) -> Iterator[EnvironmentProviders]:
    """Providers as the environment describes them, with watched exporters."""
    try:
        providers = providers_from_environment(
            make=lambda signal, entry: _watched_exporter(signal, entry, exchanges, seconds * _SENDING)
        )
    except ConfigurationError:
        raise
    except Exception as error:  # of the SDK, which checks sizes and limits as it is set up
        raise ConfigurationError(f"OpenTelemetry cannot be set up as OTEL_* says: {error}") from error
    try:
        yield providers
    finally:
        for provider in (providers.tracer_provider, providers.meter_provider, providers.logger_provider):
            if provider is not None:
                provider.shutdown()  # sends what is left


def _root(provider: TracerProvider) -> tuple[float, SpanAnchor]:
    """The share of traces that the sampler keeps, and a span without a parent, as a request makes one.

    The sampler is then replaced by one that keeps all: this record shows what else is wrong.
    """
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision

    ids = (1 << 64 | (2 * place + 1) * 2**63 // TRACES for place in range(TRACES))  # spread evenly, as random ones are
    results = [provider.sampler.should_sample(None, trace_id, NAME) for trace_id in ids]
    provider.sampler = ALWAYS_ON
    span = provider.get_tracer("ragspan").start_span(NAME)
    span.end()
    context = span.get_span_context()
    share = sum(result.decision is Decision.RECORD_AND_SAMPLE for result in results) / TRACES
    return share, SpanAnchor(trace_id=context.trace_id, span_id=context.span_id, trace_flags=int(context.trace_flags))


def _watched_exporter(signal: Signal, entry: EntryPoint, exchanges: list[Exchange], seconds: float) -> Any:
    """The exporter as the environment configures it, except that it tries no longer than `seconds`."""
    make = entry.load()
    if entry.name == "console":
        return make(out=io.StringIO())  # not into the doctor's own output
    if entry.name not in {"otlp_proto_http", "otlp_proto_grpc"}:
        return make()
    is_grpc = entry.name == "otlp_proto_grpc"
    default = f"http://localhost:{4317 if is_grpc else 4318}"
    exchange = Exchange(signal=signal, url=endpoint(signal) or default, is_grpc=is_grpc)
    exchanges.append(exchange)
    # A credential provider brings a session of its own: then no reply is seen.
    has_session = is_grpc or any(name.endswith("_CREDENTIAL_PROVIDER") for name in process_environment())
    exporter = make(timeout=seconds, **({} if has_session else {"session": _watched_session(exchange)}))
    export = exporter.export

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = export(*args, **kwargs)
        exchange.successes.append(getattr(result, "name", None) == "SUCCESS")
        return result

    exporter.export = watched
    return exporter


def _watched_session(exchange: Exchange) -> requests.Session:
    import requests
    from requests.utils import get_environ_proxies, select_proxy

    class Session(requests.Session):
        def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
            exchange.url = str(url)
            try:
                exchange.proxy = select_proxy(url, get_environ_proxies(url))
                exchange.reply = super().request(method, url, *args, **kwargs)
            except Exception as error:
                exchange.error = error
                raise
            return exchange.reply

    return Session()


class _Collecting(logging.Handler):
    """Keeps the newest lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments
            self.lines.append(record.getMessage())
            del self.lines[:-_KEPT_LINES]


@contextlib.contextmanager
def captured_logs() -> Iterator[list[str]]:
    """The warnings that ragspan and OpenTelemetry log inside, the newest last; the log's own handlers do not get them."""
    collecting = _Collecting()
    before = {logger: logger.propagate for logger in map(logging.getLogger, ("ragspan", "opentelemetry"))}
    for logger in before:
        logger.addHandler(collecting)
        logger.propagate = False
    try:
        yield collecting.lines
    finally:
        for logger, propagate in before.items():
            logger.removeHandler(collecting)
            logger.propagate = propagate
