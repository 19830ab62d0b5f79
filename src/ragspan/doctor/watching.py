"""Sends one record through everything that the application would use, and watches it on its way.

An exporter says "success" for more than that: for a redirect, which it does not follow, for a web page, and for spans that
the receiver rejects. So the endpoint's own reply is kept beside what the exporter says.
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
from ragspan.delivery import ScoreWriter
from ragspan.delivery.stats import DeliveryStats
from ragspan.engine import Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.environment import (
    EnvironmentProviders,
    Signal,
    exporter_is_configured,
    providers_from_environment,
)

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.trace import Span

NAME = "ragspan doctor"
MAX_ROOTS = 20_000  # a sampler that keeps less than one trace in thousands shows nobody any scores
_SCORING, _FLUSHING, _SENDING, _SHUTTING_DOWN = 0.5, 0.35, 0.25, 0.05  # shares of the time
_KEPT_BODY = 65_536  # bytes of a reply
_KEPT_LINES = 20  # of the log
_HTTP, _GRPC = "otlp_proto_http", "otlp_proto_grpc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What an endpoint replied to one request."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""
    """Its beginning."""


@dataclass(slots=True)
class Journal:
    """What became of everything that the exporters of one signal sent."""

    replies: list[Reply] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """Of requests without a reply."""
    successes: list[bool] = field(default_factory=list)
    """What the exporter says of each batch."""
    session: requests.Session | None = None

    def get(self, url: str, *, seconds: float) -> Reply | None:
        """What the server replies to a plain GET, without the headers of the exporter; None if nothing comes of it."""
        try:
            return _reply_of(self.session.get(url, timeout=seconds, allow_redirects=False)) if self.session else None
        except Exception:  # noqa: BLE001 - then it is not known who is there
            return None


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRecord:
    """What became of the record."""

    record: RagRecord
    root: SpanAnchor
    is_sampled: bool
    result: ScoredRecord | Dropped | None
    """None if it was not scored in time."""
    seconds: float
    """That scoring took."""
    spans: Sequence[ReadableSpan]
    journals: Mapping[Signal, Journal]
    written: Mapping[str, DeliveryStats]
    """What became of the scores at backends with scores of their own, by the name of the writer."""
    complaints: Sequence[str]
    """What was logged on the way."""


def is_grpc(entry: EntryPoint) -> bool:
    return entry.name == _GRPC


def is_otlp(entry: EntryPoint) -> bool:
    return entry.name in {_HTTP, _GRPC}


def watch_record(settings: Settings, seconds: float) -> WatchedRecord:
    """Have one record scored, and its span exported.

    Args:
        settings: those of the application.
        seconds: how long it may take.

    Raises:
        ConfigurationError: the application would not start.
    """
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    journals: dict[Signal, Journal] = {}
    with captured_logs() as complaints:
        providers = _providers(journals, seconds * _SENDING)
        kept = InMemorySpanExporter()
        providers.tracer_provider.add_span_processor(SimpleSpanProcessor(kept))
        try:
            root, is_sampled = _root(providers.tracer_provider)
            record = new_record(root)
            began = time.monotonic()
            engine_settings = _without_limits(settings, seconds)
            writers = _native_writers(settings)
            engine = engine_from(
                engine_settings, providers, emitters=[*emitters_from(engine_settings, providers), *writers]
            )
            result = score_in_time(engine, record, seconds * _SCORING * 1.1)
            scored_in = time.monotonic() - began
            engine.flush(seconds * _FLUSHING)
            written = {writer.name: writer.stats() for writer in writers}
            engine.shutdown(seconds * _SHUTTING_DOWN)
        finally:
            shut_down(providers)
    return WatchedRecord(
        record=record,
        root=root,
        is_sampled=is_sampled,
        result=result,
        seconds=scored_in,
        spans=kept.get_finished_spans(),
        journals=journals,
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


def _native_writers(settings: Settings) -> list[ScoreWriter[Any]]:
    """The application's emitters that write scores to backends of their own.

    Raises:
        ConfigurationError: one of its emitters is not installed, or cannot be made.
    """
    made = [emitter_from(name, settings) for name in settings.emitters if name not in {"otel", "console"}]
    return [emitter for emitter in made if isinstance(emitter, ScoreWriter)] if exporter_is_configured() else []


def _root(provider: TracerProvider) -> tuple[SpanAnchor, bool]:
    """A span without a parent, as a request makes one, tried until the sampler keeps it; and whether it did.

    Where the sampler keeps none, all others of this provider are kept: the record still shows what is wrong besides.
    """
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    tracer = provider.get_tracer("ragspan")
    for _ in range(MAX_ROOTS):
        span = tracer.start_span(NAME)
        span.end()
        if span.get_span_context().trace_flags.sampled:
            return _anchor(span), True
    provider.sampler = ALWAYS_ON
    span = provider.get_tracer(NAME).start_span(NAME)
    span.end()
    return _anchor(span), False


def _anchor(span: Span) -> SpanAnchor:
    context = span.get_span_context()
    return SpanAnchor(trace_id=context.trace_id, span_id=context.span_id, trace_flags=int(context.trace_flags))


# Exporters ------------------------------------------------------------------------------------------------------------


def _providers(journals: dict[Signal, Journal], seconds: float) -> EnvironmentProviders:
    """Providers as the environment describes them."""

    def make(signal: Signal, entry: EntryPoint) -> Any:
        return _watched_exporter(entry, journals.setdefault(signal, Journal()), seconds)

    try:
        return providers_from_environment(make=make)
    except ConfigurationError:
        raise
    except Exception as error:  # of the SDK, which checks sizes and limits as it is set up
        raise ConfigurationError(f"OpenTelemetry cannot be set up as OTEL_* says: {error}") from error


def shut_down(providers: EnvironmentProviders) -> None:
    """Send what is left."""
    providers.tracer_provider.shutdown()
    providers.meter_provider.shutdown()
    if providers.logger_provider is not None:
        providers.logger_provider.shutdown()


def _watched_exporter(entry: EntryPoint, journal: Journal, seconds: float) -> Any:
    """The exporter as the environment configures it, except that it tries no longer than `seconds`."""
    make = entry.load()
    if entry.name == "console":
        exporter = make(out=io.StringIO())  # not into the doctor's own output
    elif not is_otlp(entry):
        exporter = make()
    elif entry.name == _HTTP and not _brings_own_session():
        journal.session = _watched_session(journal)
        exporter = make(timeout=seconds, session=journal.session)
    else:
        exporter = make(timeout=seconds)
    export = exporter.export

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = export(*args, **kwargs)
        journal.successes.append(getattr(result, "name", None) == "SUCCESS")
        return result

    exporter.export = watched
    return exporter


def _brings_own_session() -> bool:
    """Whether a credential provider makes the session: then requests go through it, and are not watched."""
    return any(
        variable(f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{part}CREDENTIAL_PROVIDER")
        for part in ("", "TRACES_", "METRICS_", "LOGS_")
    )


def _watched_session(journal: Journal) -> requests.Session:
    import requests

    class Session(requests.Session):
        def request(self, *args: Any, **kwargs: Any) -> requests.Response:
            try:
                response = super().request(*args, **kwargs)
            except Exception as error:
                journal.errors.append(error)
                raise
            journal.replies.append(_reply_of(response))
            return response

    return Session()


def _reply_of(response: requests.Response) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(status=response.status_code, headers=headers, body=response.content[:_KEPT_BODY])


# The log --------------------------------------------------------------------------------------------------------------


class _Collecting(logging.Handler):
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
    loggers = [logging.getLogger(name) for name in ("ragspan", "opentelemetry")]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(collecting)
        logger.propagate = False
    try:
        yield collecting.lines
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(collecting)
            logger.propagate = propagate
