"""Sends one record through everything that the application would use, and notes what happens on its way.

An exporter says "success" also for a redirect, which it does not follow, for a web page, and for spans that the receiver
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

from ragspan.config import Settings, variable
from ragspan.defaults import emitter_from, emitters_from, engine_from
from ragspan.delivery import DeliveryStats, ScoreWriter
from ragspan.engine import Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.environment import Signal, endpoint, exporter_is_configured, providers_from_environment

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

NAME = "ragspan doctor"
TRACES = 1000  # of which a sampler is asked how many it keeps; one that keeps fewer shows nobody any scores
_MAX_ROOTS = 20 * TRACES
_SCORING, _FLUSHING, _SENDING, _SHUTTING_DOWN = 0.5, 0.35, 0.25, 0.05  # shares of the time
_KEPT_LINES = 20  # of the log


@dataclass(kw_only=True, slots=True)
class Exchange:
    """What an OTLP exporter sent, and what came of it."""

    signal: Signal
    url: str
    is_grpc: bool
    reply: requests.Response | None = None
    """The last one; none is seen of gRPC, and of an exporter that has a session of its own."""
    error: BaseException | None = None
    """Of the last request without a reply."""
    successes: list[bool] = field(default_factory=list)
    """What the exporter says of each batch."""
    proxy: str | None = None
    session: requests.Session | None = None

    def get(self, url: str, *, seconds: float) -> bytes:
        """The page at this address, asked for without the exporter's headers; empty if there is none."""
        try:
            return self.session.get(url, timeout=seconds, allow_redirects=False).content if self.session else b""
        except Exception:  # noqa: BLE001 - then it is not known who is there
            return b""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRecord:
    """What became of the record."""

    record: RagRecord
    root: SpanAnchor
    share: float
    """Of all traces, the part that the sampler keeps. If it keeps none, this record is sampled all the same."""
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
    with captured_logs() as complaints:
        try:
            providers = providers_from_environment(
                make=lambda signal, entry: _watched_exporter(signal, entry, exchanges, seconds * _SENDING)
            )
        except ConfigurationError:
            raise
        except Exception as error:  # of the SDK, which checks sizes and limits as it is set up
            raise ConfigurationError(f"OpenTelemetry cannot be set up as OTEL_* says: {error}") from error
        try:
            providers.tracer_provider.add_span_processor(SimpleSpanProcessor(kept))
            share, root = _root(providers.tracer_provider)
            record = new_record(root)
            usable = _without_limits(settings, seconds)
            writers = _native_writers(settings)
            engine = engine_from(usable, providers, emitters=[*emitters_from(usable, providers), *writers])
            began = time.monotonic()
            result = score_in_time(engine, record, seconds * _SCORING * 1.1)
            scored_in = time.monotonic() - began
            engine.flush(seconds * _FLUSHING)
            written = {f"{writer.name} at {writer.client.endpoint.url}": writer.stats() for writer in writers}
            engine.shutdown(seconds * _SHUTTING_DOWN)
        finally:
            for provider in (providers.tracer_provider, providers.meter_provider, providers.logger_provider):
                if provider is not None:
                    provider.shutdown()  # sends what is left
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
    now = time.time_ns()
    return RagRecord(
        question="Does ragspan work here?",
        contexts=["The doctor sends one record. It is scored like every other record, and its scores go on its span."],
        response="The doctor's record is scored like every other record.",
        name=NAME,
        started_ns=now,
        ended_ns=now,
        parent=parent,
    )


def _without_limits(settings: Settings, seconds: float) -> Settings:
    """The application's settings, but without what would hide the record from this process."""
    return dataclasses.replace(
        settings,
        emitters=("otel",),
        export="application",
        max_records_per_second=None,
        metric_timeout=min(settings.metric_timeout, seconds * _SCORING),
        exit_timeout=min(settings.exit_timeout, seconds),
    )


def _native_writers(settings: Settings) -> list[ScoreWriter]:
    """The application's emitters that write scores to backends of their own."""
    made = [emitter_from(name, settings) for name in settings.emitters if name not in {"otel", "console"}]
    return [emitter for emitter in made if isinstance(emitter, ScoreWriter)] if exporter_is_configured() else []


def _root(provider: TracerProvider) -> tuple[float, SpanAnchor]:
    """The share of traces that the sampler keeps, and a span without a parent, as a request makes one, that it keeps.

    A sampler that keeps none is replaced: the record still shows what else is wrong.
    """
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision

    ids = (1 << 64 | (2 * place + 1) * 2**63 // TRACES for place in range(TRACES))  # spread evenly, as random ones are
    results = [provider.sampler.should_sample(None, trace_id, NAME) for trace_id in ids]
    share = sum(result.decision is Decision.RECORD_AND_SAMPLE for result in results) / TRACES
    if not share:
        provider.sampler = ALWAYS_ON
    tracer = provider.get_tracer("ragspan")
    for _ in range(_MAX_ROOTS):
        span = tracer.start_span(NAME)
        span.end()
        context = span.get_span_context()
        if context.trace_flags.sampled:
            break
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
    if is_grpc or _brings_own_session():
        exporter = make(timeout=seconds)
    else:
        exchange.session = _watched_session(exchange)
        exporter = make(timeout=seconds, session=exchange.session)
    export = exporter.export

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = export(*args, **kwargs)
        exchange.successes.append(getattr(result, "name", None) == "SUCCESS")
        return result

    exporter.export = watched
    return exporter


def _brings_own_session() -> bool:
    """Whether a credential provider makes the session: then requests go through it, and are not watched."""
    signals = ("", "TRACES_", "METRICS_", "LOGS_")
    return any(variable(f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{signal}CREDENTIAL_PROVIDER") for signal in signals)


def _watched_session(exchange: Exchange) -> requests.Session:
    import requests
    from requests.utils import get_environ_proxies, select_proxy

    class Session(requests.Session):
        def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
            if method == "GET":
                return super().request(method, url, *args, **kwargs)
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
