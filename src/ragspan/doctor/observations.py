"""What the watched record shows of the judge, the endpoint and itself."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ragspan.addresses import shown_url
from ragspan.config import Settings, variable
from ragspan.doctor import Finding, State, finding
from ragspan.doctor.watching import TRACES, Exchange, WatchedRecord
from ragspan.engine import Dropped
from ragspan.judges.base import Judge
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord, Usage
from ragspan.telemetry import semconv
from ragspan.telemetry.environment import exporter_is_configured

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan

_REDIRECTS, _ERRORS = 300, 400  # HTTP
_SHOWN = 160  # characters of what a server says
_GROUNDEDNESS = ("context_adherence", "faithfulness")
_REJECTED = {"traces": "rejected_spans", "metrics": "rejected_data_points", "logs": "rejected_log_records"}


# The judge -------------------------------------------------------------------------------------------------------------


def judge_finding(settings: Settings, judge: Judge, watched: WatchedRecord) -> Finding:
    """One finding for all metrics: they have one judge."""
    if not isinstance(watched.result, ScoredRecord):
        return finding("judge", "skipped", f"{judge.name} was not asked, or was not done in time")
    outcomes = watched.result.outcomes
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, MetricFailure)]
    scores = [outcome for outcome in outcomes.values() if isinstance(outcome, Score)]
    if failures and not scores:
        failure = next((each for each in failures if each.error_type != "judge_unavailable"), failures[0])
        found = f"{judge.name} gave no answer: {failure.error_type}: {failure.message}"
        if failure.error_type == "APIConnectionError" and (cause := _cause_at(settings)):
            found += f" ({cause})"
        return finding("judge", "failed", found, judge=judge.name, error_type=failure.error_type)
    usage = reduce(add, (score.usage for score in scores if score.usage), Usage())
    found = f"{judge.name} answered in {watched.seconds:.2f} s"
    if usage.requests or usage.input_tokens:
        price = "price unknown" if usage.usd is None else f"{usage.usd:.6f} USD"
        found += f" ({usage.input_tokens} tokens in, {usage.output_tokens} out, {price})"
    misjudged = [name for name in _GROUNDEDNESS if getattr(outcomes.get(name), "label", None) == "fail"]
    if misjudged:
        found += f", but found an answer ungrounded that its context states word for word ({', '.join(misjudged)})"
    return finding(
        "judge",
        "warning" if misjudged else "ok",
        found,
        judge=judge.name,
        seconds=round(watched.seconds, 3),
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        usd=usage.usd,
    )


def _cause_at(settings: Settings) -> str | None:
    """Why no connection can be made. The client's error says only that there is none."""
    address = settings.judge_base_url or variable("OPENAI_BASE_URL")
    try:
        if address:
            importlib.import_module("httpx").get(address, timeout=2.0)  # what the client connects with
    except Exception as error:  # noqa: BLE001 - whatever it is
        return cause_of(error)
    return None


# The endpoint ----------------------------------------------------------------------------------------------------------


def observations(watched: WatchedRecord, seconds: float) -> Iterator[Finding]:
    """What the record shows of the endpoints and of itself; `seconds` are for asking an endpoint who it is."""
    endpoints: dict[object, Finding] = {}
    backend = None
    for exchange in watched.exchanges:
        if exchange.proxy:
            found = f"requests go through the proxy {shown_url(exchange.proxy)}"
            endpoints[exchange.signal, "proxy"] = _endpoint(exchange, "ok", found)
        replied = _replied(exchange, watched)
        if replied is not None:  # an endpoint that several signals share is missed once
            endpoints.setdefault(replied.facts.get("unreachable", exchange.signal), replied)
        if exchange.signal == "traces" and exchange.reply is not None:
            backend = backend_at(exchange.url, exchange.reply, partial(exchange.get, seconds=seconds / 4))
    yield from endpoints.values()
    if backend is not None:
        found = f"{backend.name} answers there: {backend.shows_scores}"
        yield finding("endpoint", "ok", found, backend=backend.name)
    if not endpoints:
        yield finding("endpoint", "skipped", "no OTLP exporter is configured, so there is no endpoint to reach")
    is_taken = all(each.state != "failed" for each in endpoints.values())
    yield from _arrival(watched, backend or RECEIVER, is_taken=is_taken)


def _endpoint(exchange: Exchange, state: State, found: str, **facts: Any) -> Finding:
    """Scores are on spans: what fails for other signals is a warning."""
    signal = exchange.signal.upper()
    own = f"OTEL_EXPORTER_OTLP_{signal}_HEADERS"
    headers = own if variable(own) else "OTEL_EXPORTER_OTLP_HEADERS"
    sent = [pair.partition("=")[0].strip().lower() for pair in (variable(headers) or "").split(",") if "=" in pair]
    return finding(
        "endpoint",
        "warning" if state == "failed" and exchange.signal != "traces" else state,
        f"{exchange.signal}: {found}",
        signal=exchange.signal,
        url=shown_url(exchange.url),
        signal_variable=signal,
        headers_variable=headers,
        headers=", ".join(sent) or "none",
        **facts,
    )


def _replied(exchange: Exchange, watched: WatchedRecord) -> Finding | None:
    """What became of what was sent; None for metrics or logs of which nothing was sent."""
    url = shown_url(exchange.url) + (" (gRPC)" if exchange.is_grpc else "")
    if exchange.reply is not None:
        is_taken, meaning = _meaning(exchange.reply, exchange.signal)
        words = f"{url} {'takes them' if is_taken else 'does not take them'}: {meaning}"
        return _endpoint(exchange, "ok" if is_taken else "failed", words, status=exchange.reply.status_code)
    if exchange.successes and all(exchange.successes):
        return _endpoint(exchange, "ok", f"{url} takes them, as the exporter says")
    if exchange.error is not None and (cause := cause_of(exchange.error)):
        place = urlsplit(exchange.url).netloc.rpartition("@")[2]
        words = f"{url} cannot be reached: {cause}{_overruled(cause)}"
        missed = _endpoint(exchange, "failed", words, unreachable=place)
        return dataclasses.replace(missed, is_misuse="is no address" in cause)
    if exchange.successes or exchange.error is not None:
        reason = repr(exchange.error or "the exporter does not say why")
        return _endpoint(exchange, "failed", f"{url} does not take them{_last(watched) or f': {reason}'}")
    if exchange.signal == "traces":
        return _endpoint(exchange, "failed", f"the exporter was not done with {url} in the time that there was")
    return None


def _overruled(cause: str) -> str:
    """The exporter's HTTP client reads its own variables before those of OpenTelemetry."""
    names = [name for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if variable(name)]
    return f" ({names[0]} overrules OTEL_EXPORTER_OTLP_CERTIFICATE)" if names and "certificate" in cause else ""


def _meaning(reply: requests.Response, signal: str) -> tuple[bool, str]:
    """Whether what was sent is taken, whatever the exporter makes of the reply, and the reply in words."""
    kind = reply.headers.get("content-type", "")
    words = f"HTTP {reply.status_code}"
    if _REDIRECTS <= reply.status_code < _ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        lost = "the exporter follows none, takes it for success, and the data are lost"
        return False, f"{words}, a redirect to {location}: {lost}"
    if reply.status_code < _REDIRECTS and "text/html" in kind:
        lost = "what answers is no OTLP receiver, though the exporter takes it for success"
        return False, f"{words} with a web page: {lost}"
    if reply.status_code < _REDIRECTS:
        rejected, why = _rejected(reply, signal)
        return (
            not rejected,
            f"{words}, but the receiver has rejected what it was sent{why}" if rejected else words + why,
        )
    said = "" if "html" in kind or "protobuf" in kind else " ".join(reply.content.decode("utf-8", "replace").split())
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    return False, words + (f": {said[:_SHOWN]}" if said else "") + (f" (by {own})" if variable(own) else "")


def _rejected(reply: requests.Response, signal: str) -> tuple[int, str]:
    """How much of a request that succeeded was thrown away all the same, and the receiver's words about it."""
    name = "trace" if signal == "traces" else signal
    try:
        module = importlib.import_module(f"opentelemetry.proto.collector.{name}.v1.{name}_service_pb2")
        response = getattr(module, f"Export{name.capitalize()}ServiceResponse")()
        if reply.headers.get("content-type", "").startswith("application/x-protobuf"):
            response.ParseFromString(reply.content)
        else:
            importlib.import_module("google.protobuf.json_format").Parse(
                reply.content, response, ignore_unknown_fields=True
            )
        partial_success = response.partial_success
    except Exception:  # noqa: BLE001 - many receivers answer something else, which says nothing about rejections
        return 0, ""
    words = partial_success.error_message
    return getattr(partial_success, _REJECTED[signal]), f": {words[:_SHOWN]}" if words else ""


# The record ------------------------------------------------------------------------------------------------------------


def _arrival(watched: WatchedRecord, backend: Backend, *, is_taken: bool) -> Iterator[Finding]:
    """How far the record got, and where to look for it."""
    findings = [_scoring(watched), *_native_scores(watched)]
    if not watched.share:
        found = f"the sampler has kept none of {TRACES} traces: answers are not scored, and only this one was sent"
        findings.append(finding("record", "failed", found))
    elif watched.share < 1:
        found = f"the sampler keeps {100 * watched.share:.3g} % of all traces"
        findings.append(finding("record", "ok", found, share=watched.share))
    if not exporter_is_configured():
        found = "traces: no exporter is configured, so no score goes anywhere"
        findings.append(finding("record", "failed", found))
    elif not is_taken:
        findings.append(finding("record", "failed", "the endpoint has not taken the record's span"))
    if all(each.state == "ok" for each in findings):  # else it is said there
        complaints = dict.fromkeys(watched.complaints)
        findings += [finding("record", "warning", f"logged on the way: {each}") for each in complaints]
    yield from findings
    yield _ids(watched, backend if exporter_is_configured() and is_taken else None)


def _scoring(watched: WatchedRecord) -> Finding:
    """What the metrics have come to."""
    result = watched.result
    if result is None:
        return finding("record", "failed", f"the record was not scored in the time that there was{_last(watched)}")
    if isinstance(result, Dropped):
        return finding("record", "failed", f"the record was dropped: {result.reason}{_last(watched)}")
    scores = {metric: each.value for metric, each in result.outcomes.items() if isinstance(each, Score)}
    unscored = {
        metric: each.reason if isinstance(each, NotApplicable) else each.error_type
        for metric, each in result.outcomes.items()
        if not isinstance(each, Score)
    }
    words = [f"{metric} {score:.2f}" for metric, score in scores.items()]
    words += [f"{metric} without a score ({reason})" for metric, reason in unscored.items()]
    state: State = "ok" if scores and not unscored else "failed"
    return finding("record", state, f"scored: {', '.join(words)}", scores=scores, unscored=unscored)


def _native_scores(watched: WatchedRecord) -> Iterator[Finding]:
    """Whether backends with scores of their own have taken them."""
    for name, stats in watched.written.items():
        lost = {**stats.rejected, **stats.dropped}
        if lost:
            found = f"{name} has not taken {sum(lost.values())} scores: {', '.join(lost)}"
            yield finding("record", "failed", found)
        elif stats.waiting or not stats.delivered:
            found = f"{name} has not taken the scores in the time that there was{_last(watched)}"
            yield finding("record", "failed", found)
        else:
            yield finding("record", "ok", f"{name} has taken {stats.delivered} scores")


def _last(watched: WatchedRecord) -> str:
    """The last line of the log."""
    return f": {watched.complaints[-1]}" if watched.complaints else ""


def _ids(watched: WatchedRecord, backend: Backend | None) -> Finding:
    """The ids by which the record is found where it has arrived."""
    record_id = watched.record.record_id
    own = [span for span in watched.spans if (span.attributes or {}).get(semconv.RECORD_ID) == record_id]
    span_id = next((span.context.span_id for span in own if span.context), watched.root.span_id)
    ids: dict[str, Any] = {
        "trace_id": f"{watched.root.trace_id:032x}",
        "span_id": f"{span_id:016x}",
        "record_id": record_id,
    }
    name = own[0].name if own else watched.record.name
    found = f"the span {name!r}: " + ", ".join(f"{key} {value}" for key, value in ids.items())
    found += "".join(f"\n{line}" for line in _tree(watched.spans))
    return dataclasses.replace(finding("record", "ok", found, **ids), advice=backend and backend.search.format(**ids))


def _tree(spans: Sequence[ReadableSpan], parent: int | None = None, depth: int = 0) -> Iterator[str]:
    """The trace, a line a span, each below its parent."""
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        if span.context and (span.parent and span.parent.span_id) == parent:
            yield f"{'  ' * depth}└ {span.name}"
            yield from _tree(spans, span.context.span_id, depth + 1)


# What is behind a reply or an error ------------------------------------------------------------------------------------


_CAUSES = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted",
    r"SSLError|\[SSL|SSL_ERROR": "no TLS connection can be made",
    "getaddrinfo|Name or service|nodename|name resolution|NameResolution": "the host name cannot be resolved",
    "[Rr]efused": "nobody listens there (connection refused)",
    "timed out|[Tt]imeout": "it does not answer in time",
    "BadStatusLine|HTTPException|LineTooLong": "what answers does not speak HTTP",
    "Connection(Reset|Aborted)|RemoteDisconnected|EOFError|[Dd]isconnected": "it closes the connection without an answer",
    "Invalid(Schema|URL)|MissingSchema|could not be cast": "it is no address that begins with http:// or https://",
    "OSError|ConnectionError|ConnectError": "the connection fails",
}
"""By a pattern for what libraries say. The first one counts."""


def cause_of(error: BaseException) -> str | None:
    """What is wrong with a connection, however many libraries have wrapped the error; None if it is about something else."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    wrapped = " ".join(map(repr, chain))
    return next((words for pattern, words in _CAUSES.items() if re.search(pattern, wrapped)), None)


class Backend(NamedTuple):
    """A tool that takes spans."""

    name: str
    shows_scores: str
    """Where in it the scores are to be seen, and where not."""
    search: str
    """What finds a record in it; `{record_id}` and `{trace_id}` stand for the ids."""


PHOENIX = Backend(
    "Phoenix",
    "scores are in the Attributes tab of the answer's span; the annotations column has only what is written through "
    "Phoenix's own API",
    "filter spans by attributes['ragspan']['record_id'] == '{record_id}'",
)
MLFLOW = Backend(
    "MLflow",
    "scores are attributes of the answer's span; the assessments column has only what is written through MLflow's own API",
    "open the trace tr-{trace_id}",
)
LANGFUSE = Backend(
    "Langfuse",
    "scores are in the metadata of the answer's observation; its own scores are only those that are written through "
    "Langfuse's API",
    "open the trace {trace_id}",
)
RECEIVER = Backend(
    "a receiver of the OpenTelemetry Collector (Jaeger and Tempo have the same)",
    "scores are attributes of the answer's span in the tool behind it",
    "search for the tag ragspan.record_id={record_id}",
)


def backend_at(url: str, reply: requests.Response, get: Callable[[str], bytes]) -> Backend | None:
    """The tool that gave this reply to spans, None if it is unknown; `get` reads other pages of the server."""
    parts = urlsplit(url)

    def page(path: str) -> bytes:
        """A page beside the one for spans, below the same prefix."""
        beside = parts.path.rstrip("/").removesuffix("/v1/traces") + path
        return get(urlunsplit((parts.scheme, parts.netloc, beside, "", ""))).strip()

    if "x-phoenix-server-version" in reply.headers:
        return PHOENIX
    if "/api/public/otel" in parts.path:
        return LANGFUSE
    if b"x-mlflow-" in reply.content.lower():
        return MLFLOW
    if re.fullmatch(rb"\d+\.\d+\.\d+\S*", page("/version")) and page("/health") == b"OK":
        return MLFLOW
    return RECEIVER if b"404 page not found" in page("/") else None  # how servers written in Go say it
