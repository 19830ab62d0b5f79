"""What the watched record shows of the judge, the endpoint and itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragspan.addresses import cause_of, shown_url
from ragspan.config import variable
from ragspan.doctor import Finding, State, finding
from ragspan.doctor.watching import TRACES, Exchange, WatchedRecord
from ragspan.engine import Dropped
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord, Usage
from ragspan.telemetry import semconv
from ragspan.telemetry.environment import exporter_is_configured

if TYPE_CHECKING:
    import requests

_REDIRECTS, _ERRORS = 300, 400  # HTTP
_SHOWN = 160  # characters of what a server says
_GROUNDEDNESS = ("context_adherence", "faithfulness")


def observations(judge: str, watched: WatchedRecord) -> Iterator[Finding]:
    """What the record shows of the judge of this name, of the endpoints, and of itself."""
    yield _judge(judge, watched)
    endpoints = _endpoints(watched)
    yield from endpoints
    if not endpoints:
        yield finding("endpoint", "skipped", "no OTLP exporter is configured, so there is no endpoint to reach")
    yield from _record(watched, is_taken=all(each.state != "failed" for each in endpoints))


def _judge(judge: str, watched: WatchedRecord) -> Finding:
    """One finding for all metrics: they have one judge."""
    if not isinstance(watched.result, ScoredRecord):
        return finding("judge", "skipped", f"{judge} was not asked, or did not answer in time")
    outcomes = watched.result.outcomes
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, MetricFailure)]
    scores = [outcome for outcome in outcomes.values() if isinstance(outcome, Score)]
    if failures and not scores:
        failure = next((each for each in failures if each.error_type != "judge_unavailable"), failures[0])
        found = f"{judge} gave no answer: {failure.error_type}: {failure.message}"
        return finding("judge", "failed", found, judge=judge, error_type=failure.error_type)
    usage = reduce(add, (score.usage for score in scores if score.usage), Usage())
    found = f"{judge} answered in {watched.seconds:.2f} s"
    if usage.requests or usage.input_tokens:
        price = "price unknown" if usage.usd is None else f"{usage.usd:.6f} USD"
        found += f" ({usage.input_tokens} tokens in, {usage.output_tokens} out, {price})"
    misjudged = [name for name in _GROUNDEDNESS if getattr(outcomes.get(name), "label", None) == "fail"]
    if misjudged:
        found += f", but failed an answer that its context states word for word ({', '.join(misjudged)})"
    facts: dict[str, Any] = {"seconds": round(watched.seconds, 3), **dataclasses.asdict(usage)}
    return finding("judge", "warning" if misjudged else "ok", found, judge=judge, **facts)


# The endpoint ----------------------------------------------------------------------------------------------------------


def _endpoints(watched: WatchedRecord) -> list[Finding]:
    findings: dict[object, Finding] = {}
    for exchange in watched.exchanges:
        each = _reply(exchange, watched)
        if each is not None:  # one endpoint of several signals cannot be reached once
            findings.setdefault(each.facts.get("unreachable", exchange.signal), each)
    return list(findings.values())


def _reply(exchange: Exchange, watched: WatchedRecord) -> Finding | None:
    """What became of what was sent; None for metrics or logs of which nothing was sent."""
    url = shown_url(exchange.url) + (" (gRPC)" if exchange.is_grpc else "")
    if exchange.proxy:
        url += f" (through the proxy {shown_url(exchange.proxy)})"
    if exchange.reply is not None:
        is_taken, meaning = _meaning(exchange.reply, exchange.signal)
        words = f"{url} {'accepts them' if is_taken else 'does not accept them'}: {meaning}"
        return _endpoint(exchange, "ok" if is_taken else "failed", words, status=exchange.reply.status_code)
    if exchange.successes and all(exchange.successes):
        return _endpoint(exchange, "ok", f"{url} accepts them, as the exporter says")
    if exchange.error is not None and (cause := cause_of(exchange.error)):
        place = urlsplit(exchange.url).netloc.rpartition("@")[2]
        missed = _endpoint(exchange, "failed", f"{url} cannot be reached: {cause}", unreachable=place)
        return dataclasses.replace(missed, is_misuse="is no address" in cause)
    if exchange.successes or exchange.error is not None:
        reason = repr(exchange.error or "the exporter does not say why")
        return _endpoint(exchange, "failed", f"{url} does not accept them{_last(watched) or f': {reason}'}")
    if exchange.signal == "traces":
        return _endpoint(exchange, "failed", f"the exporter did not finish with {url} in time")
    return None


def _endpoint(exchange: Exchange, state: State, found: str, **facts: Any) -> Finding:
    """Scores are on spans: what fails for other signals is a warning."""
    if state == "failed" and exchange.signal != "traces":
        state = "warning"
    facts |= {"signal": exchange.signal, "url": shown_url(exchange.url), "variable": exchange.signal.upper()}
    return finding("endpoint", state, f"{exchange.signal}: {found}", **facts)


def _meaning(reply: requests.Response, signal: str) -> tuple[bool, str]:
    """Whether what was sent is accepted, whatever the exporter makes of the reply, and the reply in words."""
    kind = reply.headers.get("content-type", "")
    words = f"HTTP {reply.status_code}"
    if _REDIRECTS <= reply.status_code < _ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        lost = "the exporter does not follow it and reports success, but the data are lost"
        return False, f"{words}, a redirect to {location}: {lost}"
    if reply.status_code >= _ERRORS:
        said = (
            "" if "html" in kind or "protobuf" in kind else " ".join(reply.content.decode("utf-8", "replace").split())
        )
        own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
        return False, words + (f": {said[:_SHOWN]}" if said else "") + (f" (by {own})" if variable(own) else "")
    if "text/html" in kind:
        return False, f"{words} with a web page: this is no OTLP receiver, though the exporter reports success"
    rejection = _rejection(reply)
    return rejection is None, words if rejection is None else f"{words}, but the receiver rejected the data{rejection}"


def _rejection(reply: requests.Response) -> str | None:
    """What a receiver says that accepts a request and rejects its data; None if it rejects nothing."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:  # the responses to metrics and logs have the same form
        partial = ExportTraceServiceResponse.FromString(reply.content).partial_success
    except Exception:  # noqa: BLE001 - many receivers answer something else
        return None
    said = f": {partial.error_message[:_SHOWN]}" if partial.error_message else ""
    return said if partial.rejected_spans else None


# The record ------------------------------------------------------------------------------------------------------------


def _record(watched: WatchedRecord, *, is_taken: bool) -> Iterator[Finding]:
    """How far the record got, and where to look for it."""
    findings = [_scoring(watched), *_native_scores(watched)]
    if not watched.share:
        found = f"the sampler keeps none of {TRACES} traces: answers are not scored, and only this one was sent"
        findings.append(finding("record", "failed", found))
    elif watched.share < 1:
        findings.append(finding("record", "ok", f"the sampler keeps {100 * watched.share:.3g} % of all traces"))
    if not exporter_is_configured():
        findings.append(
            finding("record", "failed", "no exporter of traces is configured, so no score leaves the process")
        )
    elif not is_taken:
        findings.append(finding("record", "failed", "the endpoint did not accept the record's span"))
    if all(each.state == "ok" for each in findings):  # else it is said there
        complaints = dict.fromkeys(watched.complaints)
        findings += [finding("record", "warning", f"ragspan logged: {each}") for each in complaints]
    yield from findings
    yield _ids(watched, "arrived" if exporter_is_configured() and is_taken else "was made, and did not arrive")


def _scoring(watched: WatchedRecord) -> Finding:
    """What the metrics have come to."""
    result = watched.result
    if result is None:
        return finding("record", "failed", f"the record was not scored in time{_last(watched)}")
    if isinstance(result, Dropped):
        return finding("record", "failed", f"the record was dropped: {result.reason}{_last(watched)}")
    scores = {metric: each.value for metric, each in result.outcomes.items() if isinstance(each, Score)}
    unscored = {
        metric: each.reason if isinstance(each, NotApplicable) else each.error_type
        for metric, each in result.outcomes.items()
        if not isinstance(each, Score)
    }
    words = ["scored: " + ", ".join(f"{metric} {score:.2f}" for metric, score in scores.items())] if scores else []
    if unscored:
        words.append("without a score: " + ", ".join(f"{metric} ({reason})" for metric, reason in unscored.items()))
    state: State = "ok" if scores and not unscored else "failed"
    return finding("record", state, "; ".join(words), scores=scores, unscored=unscored)


def _native_scores(watched: WatchedRecord) -> Iterator[Finding]:
    """Whether backends with scores of their own accepted them."""
    for name, stats in watched.written.items():
        lost = {**stats.rejected, **stats.dropped}
        if lost:
            found = f"{name} did not accept {sum(lost.values())} scores: {', '.join(lost)}"
            yield finding("record", "failed", found)
        elif stats.waiting or not stats.delivered:
            yield finding("record", "failed", f"{name} did not accept the scores in time{_last(watched)}")
        else:
            yield finding("record", "ok", f"{name} accepted {stats.delivered} scores")


def _last(watched: WatchedRecord) -> str:
    """The last line of the log."""
    return f": {watched.complaints[-1]}" if watched.complaints else ""


def _ids(watched: WatchedRecord, what: str) -> Finding:
    """The ids by which a tool finds the record."""
    record_id = watched.record.record_id
    own = (span for span in watched.spans if (span.attributes or {}).get(semconv.RECORD_ID) == record_id)
    span = next(own, None)
    span_id = span.context.span_id if span and span.context else watched.root.span_id
    ids: dict[str, Any] = {
        "trace_id": f"{watched.root.trace_id:032x}",
        "span_id": f"{span_id:016x}",
        "record_id": record_id,
    }
    named = ", ".join(f"{key} {value}" for key, value in ids.items())
    return finding("record", "ok", f"the span {span.name if span else watched.record.name!r} {what}: {named}", **ids)
