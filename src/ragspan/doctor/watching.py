"""Sends one record through everything that the application would use, and says what happens on its way."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ragspan.config import Settings, process_environment, variable
from ragspan.defaults import emitter_from, engine_from, with_spans
from ragspan.doctor import Finding, State, finding
from ragspan.doctor.advice import Code
from ragspan.doctor.endpoint_findings import Exchange, endpoint_finding, last_of
from ragspan.doctor.judge_findings import judged, refused_by_judges
from ragspan.doctor.logs import captured_logs
from ragspan.doctor.tools import close, export_to_tools, written
from ragspan.engine import Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.outcomes import NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.answer_spans import answer_name
from ragspan.telemetry.environment import (
    GRPC_PORT,
    HTTP_PORT,
    EnvironmentProviders,
    Signal,
    endpoint,
    exporter_is_configured,
    providers_from_environment,
    why_no_spans,
)
from ragspan.tools import ScoreWriter

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import TracerProvider

NAME = "ragspan doctor"
_TRACES = 1000  # of which a sampler is asked how many it keeps
_SCORING, _FLUSHING, _SENDING, _SHUTTING_DOWN = 0.5, 0.35, 0.25, 0.05  # shares of the time
_CONTACTING = 0.1  # likewise, for the server of a tool
_SpansEnd: TypeAlias = Literal["arrived", "did not arrive", "was not sent"]
_SPAN_CODES: Mapping[_SpansEnd, Code] = {
    "arrived": "span_arrived",
    "did not arrive": "span_lost",
    "was not sent": "span_not_sent",
}


def watch_record(judge: str, settings: Settings, seconds: float) -> list[Finding]:
    """Have one record scored and its span exported, as with these settings, within `seconds`.

    Returns:
        What it shows of the judge of this name, of the endpoint, and of itself.

    Raises:
        ConfigurationError: the application would not start.
    """
    exchanges: list[Exchange] = []
    with captured_logs() as complaints, _providers(exchanges, seconds) as providers:
        share, root = _root(providers.tracer_provider)
        record = new_record(root)
        usable = _without_limits(settings, seconds)
        named = [emitter_from(name, usable, providers) for name in settings.emitters if name != "console"]
        emitters = with_spans(named, usable, providers)
        writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        by_tools, missing = (
            ([], []) if exporter_is_configured() else export_to_tools(writers, providers.tracer_provider)
        )
        metrics = metrics_from(usable)
        engine = engine_from(usable, providers, emitters=emitters, metrics=metrics)
        began = time.monotonic()
        result = score_in_time(engine, record, seconds * _SCORING * 1.2)
        scored_in = time.monotonic() - began
        engine.flush(seconds * _FLUSHING)
        by_writers = [each for writer in writers for each in written(writer, complaints, seconds * _CONTACTING)]
        engine.shutdown(seconds * _SHUTTING_DOWN)
        close(by_tools, seconds * _SHUTTING_DOWN)
    endpoints = [endpoint_finding(exchange, complaints) for exchange in exchanges]
    has_arrived = exporter_is_configured() and all(each.state != "failed" for each in endpoints)
    has_arrived = has_arrived or (bool(by_tools) and all(each.state == "ok" for each in by_writers))
    reached = [*endpoints, *missing, *(each for each in by_writers if each.check == "endpoint")]
    if not (reached or by_writers):
        reached = [
            finding(
                "endpoint", "no_endpoint", "skipped", "no OTLP exporter is configured, so there is no endpoint to reach"
            )
        ]
    on_way = [_scored(result, complaints), *(each for each in by_writers if each.check == "record"), *_sampled(share)]
    on_way += _exported(endpoints) if endpoints or by_tools or exporter_is_configured() else [_printed(settings)]
    if all(each.state == "ok" for each in [*on_way, *reached]):  # else it is said there
        on_way += [_logged(each) for each in dict.fromkeys(complaints)]
    is_sent = bool(by_tools) or exporter_is_configured()
    what: _SpansEnd = "arrived" if has_arrived else "did not arrive" if is_sent else "was not sent"
    ids = _ids(record, root, result, what=what)
    return [judged(judge, result, scored_in, refused_by_judges(metrics)), *reached, *on_way, ids]


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
        providers.shutdown()


def _root(provider: TracerProvider) -> tuple[float, SpanAnchor]:
    """The share of traces that the sampler keeps, and a span without a parent, as a request makes one.

    The sampler is then replaced by one that keeps all: this record shows what else is wrong.
    """
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision

    ids = (
        1 << 64 | (2 * place + 1) * 2**63 // _TRACES for place in range(_TRACES)
    )  # spread evenly, as random ones are
    results = [provider.sampler.should_sample(None, trace_id, NAME) for trace_id in ids]
    provider.sampler = ALWAYS_ON
    span = provider.get_tracer("ragspan").start_span(NAME)
    span.end()
    context = span.get_span_context()
    share = sum(result.decision is Decision.RECORD_AND_SAMPLE for result in results) / _TRACES
    return share, SpanAnchor(trace_id=context.trace_id, span_id=context.span_id, trace_flags=int(context.trace_flags))


def _watched_exporter(signal: Signal, entry: EntryPoint, exchanges: list[Exchange], seconds: float) -> Any:
    """The exporter as the environment configures it, except that it tries no longer than `seconds`."""
    make = entry.load()
    if entry.name == "console":
        return make(out=io.StringIO())  # not into the doctor's own output
    if entry.name not in {"otlp_proto_http", "otlp_proto_grpc"}:
        return make()
    if signal != "traces":  # what fails there is logged
        return make(timeout=seconds)
    is_grpc = entry.name == "otlp_proto_grpc"
    exchange = Exchange(
        url=endpoint(signal) or f"http://localhost:{GRPC_PORT if is_grpc else HTTP_PORT}", is_grpc=is_grpc
    )
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
    from requests.utils import get_environ_proxies, select_proxy

    from ragspan.tools.http import MAX_REPLY
    from ragspan.tools.sessions import BoundedSession

    class Session(BoundedSession):
        def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
            exchange.url = str(url)
            try:
                exchange.proxy = select_proxy(url, get_environ_proxies(url))
                exchange.reply = super().request(method, url, *args, **kwargs)
            except Exception as error:
                exchange.error = error
                raise
            return exchange.reply

    return Session(most=MAX_REPLY)


# The record ------------------------------------------------------------------------------------------------------------


def _scored(result: ScoredRecord | Dropped | None, complaints: Sequence[str]) -> Finding:
    """What the metrics have come to."""
    if result is None:
        return finding(
            "record", "not_scored_in_time", "failed", f"the record was not scored in time{last_of(complaints)}"
        )
    if isinstance(result, Dropped):
        code: Code = "redaction_failed" if result.reason == "redaction_failed" else "not_scored"
        return finding("record", code, "failed", f"the record was dropped: {result.reason}{last_of(complaints)}")
    scores = {metric: each.value for metric, each in result.outcomes.items() if isinstance(each, Score)}
    unscored = {
        metric: each.reason if isinstance(each, NotApplicable) else each.error_type
        for metric, each in result.outcomes.items()
        if not isinstance(each, Score)
    }
    words = ["scored: " + ", ".join(f"{metric} {score:.2f}" for metric, score in scores.items())] if scores else []
    if unscored:
        words.append("without a score: " + ", ".join(f"{metric} ({reason})" for metric, reason in unscored.items()))
    if scores and not unscored:
        return finding("record", "scored", "ok", "; ".join(words), scores=scores, unscored=unscored)
    code = "budget_exhausted" if "budget_exhausted" in unscored.values() else "not_scored"
    return finding("record", code, "failed", "; ".join(words), scores=scores, unscored=unscored)


def _sampled(share: float) -> Iterator[Finding]:
    if not share:
        found = f"the sampler keeps none of {_TRACES} traces: answers are not scored, and only this one was sent"
        yield finding("record", "sampler_keeps_none", "failed", found)
    elif share < 1:
        yield finding("record", "sampler_keeps_some", "ok", f"the sampler keeps {100 * share:.3g} % of all traces")


def _exported(endpoints: Sequence[Finding]) -> Iterator[Finding]:
    if any(each.state == "failed" for each in endpoints):
        yield finding("record", "span_not_accepted", "failed", "the endpoint did not accept the record's span")


def _printed(settings: Settings) -> Finding:
    """Where scores go that no exporter takes."""
    why_not = why_no_spans()
    if why_not is not None:
        code: Code = "sdk_disabled" if variable("OTEL_SDK_DISABLED") else "no_exporter"
        return finding("record", code, "failed", f"{why_not}, so no score leaves the process")
    if "console" in settings.emitters:
        found = "RAGSPAN_EMITTERS names 'console': each answer is printed with its scores"
        return finding("record", "printed", "ok", found)
    if variable("RAGSPAN_EMITTERS"):
        found = "no exporter of traces is configured, so no score leaves the process"
        return finding("record", "no_exporter", "failed", found)
    found = (
        "no exporter of traces is configured: ragspan.configure() and `ragspan run` print each answer with its scores"
    )
    return finding("record", "no_exporter", "warning", f"{found}, and nothing else is done with them")


def _ids(record: RagRecord, root: SpanAnchor, result: ScoredRecord | Dropped | None, *, what: _SpansEnd) -> Finding:
    """The ids by which a tool finds the record."""
    span = result.span if isinstance(result, ScoredRecord) else None
    ids: dict[str, Any] = {
        "trace_id": f"{root.trace_id:032x}",
        "span_id": f"{(span or root).span_id:016x}",
        "record_id": record.record_id,
    }
    named = ", ".join(f"{key} {value}" for key, value in ids.items())
    state: State = "ok" if what == "arrived" else "skipped"
    code = _SPAN_CODES[what]
    return finding(
        "record", code, state, f"the span {(answer_name(record) if span else NAME)!r} {what}: {named}", **ids
    )


def _logged(line: str) -> Finding:
    """What was logged on the way; of what an exporter says, which signal it is about."""
    code: Code = (
        "logged_export" if "export" in line and any(signal in line for signal in ("metrics", "logs")) else "logged"
    )
    return finding(
        "record", "invalid_headers" if "Header format invalid" in line else code, "warning", f"ragspan logged: {line}"
    )
