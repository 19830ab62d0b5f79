"""Sends one record through everything that the application would use, and says what happens on its way."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from ragspan.addresses import cause_in, cause_of, shown_url
from ragspan.application import own_exporters
from ragspan.arguments import counted
from ragspan.config import DEFAULT_METRICS, Settings, process_environment, variable
from ragspan.defaults import emitter_from, engine_from, with_spans
from ragspan.doctor import Finding
from ragspan.engine import Dropped
from ragspan.exceptions import ConfigurationError
from ragspan.judges.judge_catalogue import EMBEDDED
from ragspan.judges.judge_protocols import Judge
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.otel_emitter import answer_name
from ragspan.telemetry.providers import (
    GRPC_PORT,
    HTTP_PORT,
    Signal,
    endpoint,
    exporter_names,
    providers_from_environment,
    why_no_spans,
)
from ragspan.tools import ScoreWriter
from ragspan.usage import Usage

if TYPE_CHECKING:
    import requests

NAME = "ragspan doctor"
DOCS = "https://github.com/ragspan/ragspan/blob/main/docs"
_SCORING, _WAITING, _SENDING, _SHUTTING_DOWN = 0.5, 0.85, 0.25, 0.05  # shares of the time
_OTHER_RUNS = "tool_has_other_runs"
_SLOW = "it is slow or hangs: try a larger --timeout; RAGSPAN_METRIC_TIMEOUT is the application's limit"
_ADVICE = {
    "timeout": _SLOW,
    "APITimeoutError": _SLOW,
    "AuthenticationError": "correct RAGSPAN_JUDGE_API_KEY, or where that is not set the provider's own variable",
    "InvalidVerdict": f"how replies are read: {DOCS}/reference/providers.md#how-replies-are-read",
    "RateLimitError": "the provider takes no more requests for now: see its limits and your credit there",
}
"""By the type of a judge's failure."""


def watch_record(judge: Judge, settings: Settings, seconds: float) -> list[Finding]:
    """Have one record scored and its span exported, as with these settings, within `seconds`.

    A `ConfigurationError` says why the application would not start.
    """
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    exchanges: list[Exchange] = []
    with captured_logs() as complaints:
        try:
            providers = providers_from_environment(
                make=lambda signal, entry: _watched_exporter(signal, entry, exchanges, seconds * _SENDING)
            )
        except ConfigurationError:
            raise
        except Exception as error:  # of the SDK, which checks sizes and limits as it is set up
            raise ConfigurationError(f"OpenTelemetry cannot be set up as OTEL_* says: {error}") from error
        with contextlib.ExitStack() as ending:
            ending.callback(providers.shutdown)
            providers.tracer_provider.sampler = ALWAYS_ON  # from here on: this record shows what else is wrong
            span = providers.tracer_provider.get_tracer("ragspan").start_span(NAME)  # as a request makes one
            made = span.get_span_context()
            root = SpanAnchor(trace_id=made.trace_id, span_id=made.span_id, trace_flags=int(made.trace_flags))
            record = new_record(root)
            usable = dataclasses.replace(
                settings,
                metric_timeout=min(settings.metric_timeout, seconds * _SCORING),
                exit_timeout=0.0,  # the doctor waits for it, no signal does
            )
            named = [emitter_from(name, usable, providers) for name in settings.emitters if name != "console"]
            writers = [emitter for emitter in named if isinstance(emitter, ScoreWriter)]
            is_sent = bool(exporter_names("traces"))
            if writers and not is_sent:  # as an application does that names no exporter
                for exporter in own_exporters(writers):
                    providers.tracer_provider.add_span_processor(BatchSpanProcessor(exporter))
                    is_sent = True
            span.end()  # once there is somebody to export it
            engine = engine_from(usable, providers, emitters=with_spans(named, usable, providers))
            began = time.monotonic()
            result: ScoredRecord | Dropped | None = None  # None if nothing becomes of it in time
            with contextlib.suppress(asyncio.TimeoutError):
                result = asyncio.run(asyncio.wait_for(engine.score(record, sample=False), seconds * _SCORING * 1.2))
            scored_in = time.monotonic() - began
            while not engine.flush(2.0) and not complaints and time.monotonic() - began < seconds * _WAITING:
                pass  # a span may be on its way; what was refused will not be taken in a moment
            by_tools = [_tool_finding(writer, complaints) for writer in writers]
            engine.shutdown(seconds * _SHUTTING_DOWN)
    found = [_judge_finding(judge.name, result, scored_in)] if isinstance(result, ScoredRecord) else []
    found += [endpoint_finding(exchange, complaints) for exchange in exchanges]
    found += [_scored(result, complaints), *by_tools]
    if any(each.state == "failed" for each in found):  # which says why the record does not arrive
        return found
    if not is_sent:
        return found if any(each.code == _OTHER_RUNS for each in found) else [*found, _not_sent(settings)]
    return [*found, _arrived(record, result.span if isinstance(result, ScoredRecord) else None, root)]


def _arrived(record: RagRecord, span: SpanAnchor | None, root: SpanAnchor) -> Finding:
    """The ids by which a tool finds the record."""
    trace_id, span_id = f"{root.trace_id:032x}", f"{(span or root).span_id:016x}"
    advice = (
        f"look for the attribute ragspan.record_id in your tool; Phoenix: attributes['ragspan']['record_id'] == "
        f"'{record.record_id}'; MLflow: the trace tr-{trace_id}; other tools: {DOCS}/tracing-tools.md"
    )
    ids = f"trace_id {trace_id}, span_id {span_id}, record_id {record.record_id}"
    found = f"the span {(answer_name(record) if span else NAME)!r} arrived: {ids}"
    return Finding("record", "arrived", "ok", found, advice)


def new_record(parent: SpanAnchor | None = None) -> RagRecord:
    """A record with a response that its context states word for word."""
    return RagRecord(
        question="Does ragspan work here?",
        contexts=["The doctor sends one record. It is scored like every other record, and its scores go on its span."],
        response="The doctor's record is scored like every other record.",
        name=NAME,
        parent=parent,
    )


@contextlib.contextmanager
def captured_logs() -> Iterator[list[str]]:
    """The warnings that ragspan and OpenTelemetry log inside, the newest last; the log's own handlers do not get them."""
    lines: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with contextlib.suppress(Exception):  # a message that does not fit its arguments
                lines.append(record.getMessage())

    collecting = Collecting(logging.WARNING)
    before = {logger: logger.propagate for logger in map(logging.getLogger, ("ragspan", "opentelemetry"))}
    for logger in before:
        logger.addHandler(collecting)
        logger.propagate = False
    try:
        yield lines
    finally:
        for logger, propagate in before.items():
            logger.removeHandler(collecting)
            logger.propagate = propagate


def _watched_exporter(signal: Signal, entry: EntryPoint, exchanges: list[Exchange], seconds: float) -> Any:
    """The exporter as the environment configures it, except that it tries no longer than `seconds`."""
    make = entry.load()
    if entry.name not in {"otlp_proto_http", "otlp_proto_grpc"}:
        return make(out=io.StringIO()) if entry.name == "console" else make()  # not into the doctor's own output
    if signal != "traces":
        return make(timeout=seconds)
    from ragspan.tools.http import Endpoint, session_for

    is_grpc = entry.name == "otlp_proto_grpc"
    url = endpoint(signal) or f"http://localhost:{GRPC_PORT if is_grpc else HTTP_PORT}"
    exchange = Exchange(url=url, is_grpc=is_grpc)
    exchanges.append(exchange)
    session = session_for(Endpoint(url=url))
    request = session.request

    def watched_request(method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        exchange.url = str(url)
        try:
            exchange.reply = request(method, url, *args, **kwargs)
        except Exception as error:
            exchange.error = error
            raise
        return exchange.reply

    session.request = watched_request  # type: ignore[method-assign]
    # A credential provider brings a session of its own: then no reply is seen.
    has_session = is_grpc or any(name.endswith("_CREDENTIAL_PROVIDER") for name in process_environment())
    exporter = make(timeout=seconds, **({} if has_session else {"session": session}))
    export = exporter.export

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = export(*args, **kwargs)
        exchange.successes.append(getattr(result, "name", None) == "SUCCESS")
        return result

    exporter.export = watched
    return exporter


def _judge_finding(judge: str, result: ScoredRecord, seconds: float) -> Finding:
    """What the record shows of the judge; one finding for all metrics, which have one judge."""
    outcomes = result.outcomes
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, MetricFailure)]
    if failures and not any(isinstance(outcome, Score) for outcome in outcomes.values()):
        failure = next((each for each in failures if each.error_type != "judge_unavailable"), failures[0])
        found = f"{judge} gave no answer: {failure.error_type}: {failure.message}"
        other = "check RAGSPAN_JUDGE_BASE_URL, and the endpoint's log or the provider's documentation of this error"
        if "certificate is not trusted" in failure.message:
            other = "name the file of your certificate authority in SSL_CERT_FILE"
        return Finding("judge", "judge_failed", "failed", found, _ADVICE.get(failure.error_type, other))
    if not failures and all(getattr(outcome, "reason", None) == "budget_exhausted" for outcome in outcomes.values()):
        return Finding("judge", "judge_not_asked", "skipped", f"{judge} was not asked: the budget does not allow it")
    found = f"{judge} answered in {seconds:.2f} s"
    used = sum((outcome.usage for outcome in outcomes.values() if outcome.usage), Usage())
    if used.requests:
        price = "its price is not known" if used.usd is None else f"${used.usd:.6f}"
        found += f" (requests {used.requests}, tokens {used.input_tokens:,} in, {used.output_tokens:,} out; {price})"
    misjudged = [name for name in DEFAULT_METRICS if getattr(outcomes.get(name), "label", None) == "fail"]
    if misjudged:
        found += f", but failed an answer that its context states word for word ({', '.join(misjudged)})"
        advice = "its scores will mislead: use a more capable model"
        return Finding("judge", "judge_fails_good_answer", "warning", found, advice)
    lists_others = "it compares words; `ragspan judges` lists language models" if judge == EMBEDDED else None
    return Finding("judge", "judge_answered", "ok", found, lists_others)


def _scored(result: ScoredRecord | Dropped | None, complaints: Sequence[str]) -> Finding:
    """What the metrics have come to."""
    why = f": {complaints[0 if isinstance(result, Dropped) else -1]}" if complaints else ""
    if result is None:
        found = f"the judge did not answer in time{why}"
        return Finding("record", "not_scored_in_time", "failed", found, "a larger --timeout waits longer")
    if isinstance(result, Dropped):
        is_redaction = result.reason == "redaction_failed"
        todo = "the function of RAGSPAN_REDACT has to accept a str and return one" if is_redaction else None
        return Finding("record", "dropped", "failed", f"the record was dropped: {result.reason}{why}", todo)
    scores = {metric: each.value for metric, each in result.outcomes.items() if isinstance(each, Score)}
    unscored = {
        metric: each.reason if isinstance(each, NotApplicable) else each.error_type
        for metric, each in result.outcomes.items()
        if not isinstance(each, Score)
    }
    words = ", ".join(f"{metric} {score:.2f}" for metric, score in scores.items())
    if not unscored:
        return Finding("record", "scored", "ok", f"scored: {words}")
    words += "; without a score: " + ", ".join(f"{metric} ({reason})" for metric, reason in unscored.items())
    advice = "see the judge above"
    if "budget_exhausted" in unscored.values():
        advice = "the budget allows less than one answer needs: raise it, or give Budget a fallback"
    return Finding("record", "not_scored", "failed", words.removeprefix("; "), advice)


def _tool_finding(writer: ScoreWriter, complaints: Sequence[str]) -> Finding:
    """Whether a tool that has scores of its own has accepted the record's."""
    stats = writer.stats()
    lost = {**stats.rejected, **stats.dropped}
    if stats.delivered and not lost and not stats.waiting:
        found = f"{writer.name} accepted {counted(stats.delivered, 'score')}"
        return Finding("record", "tool_took_scores", "ok", found)
    if not writer.needs_span and set(lost) == {"no_span"}:
        found = f"{writer.name} gets scores on the runs of its own tracer, and the doctor's record is not one of them"
        return Finding("record", _OTHER_RUNS, "skipped", found, "ask your application, and look at that run")
    reasons = ", ".join(lost).replace("no_span", "no_span: the record's trace is not sampled")
    reasons = reasons or (complaints[-1] if complaints else "no reply in time")
    found = f"{writer.name} did not accept the scores: {reasons}"
    advice = f"check its address and credentials: {DOCS}/tracing-tools.md; the span has to go there, too"
    return Finding("record", "tool_refused_scores", "failed", found, advice)


def _not_sent(settings: Settings) -> Finding:
    """Where scores go that no exporter takes."""
    advice = (
        "set OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318, or where your tool listens; the doctor does not "
        "see an exporter that your own code sets up"
    )
    if "console" in settings.emitters:
        found = "RAGSPAN_EMITTERS names 'console': each answer is printed with its scores"
        return Finding("record", "printed", "ok", found)
    why_not = why_no_spans() or "no exporter of traces is configured"
    if why_no_spans() or variable("RAGSPAN_EMITTERS"):
        return Finding("record", "no_exporter", "failed", f"{why_not}, so no score leaves the process", advice)
    found = f"{why_not}: ragspan.configure() and `ragspan run` only print each answer with its scores"
    return Finding("record", "no_exporter", "warning", found, advice)


# The endpoint: an exporter reports success also for a redirect, a web page and rejected spans

_REDIRECTS, _ERRORS = 300, 400  # HTTP
_SHOWN = 160  # characters of what a server says
_OWN_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_KEY = (
    "OTEL_EXPORTER_OTLP_HEADERS (OTEL_EXPORTER_OTLP_TRACES_HEADERS replaces it) has to contain the key as the tool's "
    "documentation says, such as authorization=Bearer%20…"
)
_FORMAT = "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and unset OTEL_EXPORTER_OTLP_COMPRESSION"
_ADDRESS = (
    "/v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not contain that path itself; if the receiver has "
    "another path, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used unchanged"
)
_ADVICE_BY_STATUS: Mapping[int, str] = {
    400: _FORMAT,
    401: _KEY,
    403: _KEY,
    404: _ADDRESS,
    405: _ADDRESS,
    413: "a proxy or the receiver takes only small requests: set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64",
    415: _FORMAT,
    422: "a header is missing or wrong; MLflow wants OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>",
}
"""By the status of a reply."""
_HINTS: Mapping[str, str] = {
    "UNAUTHENTICATED": _KEY,
    "PERMISSION_DENIED": _KEY,
    "address that begins with": "write it as http://localhost:4318",
    "is not trusted": "name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE",
    "no TLS": "does the address have to begin with http:// in place of https://?",
    "SSL": "begin the address with http:// if the receiver uses no TLS: without it, gRPC uses TLS",
}
"""By words of why a connection failed."""


@dataclasses.dataclass(kw_only=True, slots=True)
class Exchange:
    """What an OTLP exporter of spans sent, and what came of it."""

    url: str
    is_grpc: bool
    reply: requests.Response | None = None
    """The last one; None also where replies cannot be seen, as with gRPC."""
    error: BaseException | None = None
    """Of the last request without a reply."""
    successes: list[bool] = dataclasses.field(default_factory=list)
    """What the exporter says of each batch."""


def endpoint_finding(exchange: Exchange, complaints: Sequence[str]) -> Finding:
    """What became of what was sent."""
    url = shown_url(exchange.url) + (" (gRPC)" if exchange.is_grpc else "")
    if exchange.reply is not None:
        return _of_reply(exchange.reply, url)
    if exchange.successes and all(exchange.successes):
        return Finding("endpoint", "endpoint_accepts", "ok", f"{url} accepts them, as the exporter says")
    said = complaints[-1] if complaints else repr(exchange.error or "the exporter does not say why")
    why = (exchange.error and cause_of(exchange.error)) or cause_in(said)
    found = f"{url} cannot be reached: {why}" if why else f"{url} does not accept them: {said}"
    usual = "start the receiver, or correct the address and its port (4318 for http/protobuf, 4317 for grpc)"
    advice = next((hint for words, hint in _HINTS.items() if words in f"{why} {said}"), usual)
    return Finding("endpoint", "endpoint_unreachable", "failed", found, advice)


def _of_reply(reply: requests.Response, url: str) -> Finding:
    """What the reply means, whatever the exporter makes of it."""
    kind, status = reply.headers.get("content-type", ""), reply.status_code
    code, words, advice = "endpoint_refuses", "", _ADVICE_BY_STATUS.get(status, "see the receiver's log and limits")
    if _REDIRECTS <= status < _ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        words = f", a redirect to {location}, which the exporter does not follow; it reports success"
        code, advice = "endpoint_redirects", "set OTEL_EXPORTER_OTLP_ENDPOINT to the address that it points to"
    elif status >= _ERRORS:
        is_text = not ("html" in kind or "protobuf" in kind)
        said = " ".join(reply.content.decode("utf-8", "replace").split()) if is_text else ""
        words = f": {said[:_SHOWN]}" if said else ""
    elif "text/html" in kind:
        words = " with a web page: this is not an OTLP receiver, though the exporter reports success"
        advice = _ADDRESS
    elif not (words := _rejected(reply)):
        return Finding("endpoint", "endpoint_accepts", "ok", f"{url} accepts them: HTTP {status}")
    if advice == _ADDRESS and variable(_OWN_ENDPOINT):
        advice = f"{_OWN_ENDPOINT} is used unchanged: it usually has to end in /v1/traces"
    return Finding("endpoint", code, "failed", f"{url} does not accept them: HTTP {status}{words}", advice)


def _rejected(reply: requests.Response) -> str:
    """What a receiver says that accepts a request and rejects its data."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(reply.content).partial_success
    except Exception:  # noqa: BLE001 - many receivers answer something else
        return ""
    said = f", but the receiver rejected the data: {partial.error_message[:_SHOWN]}"
    return said if partial.rejected_spans else ""
