"""The last check: whether the record got through, and where to look for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.doctor.backends import RECEIVER
from ragspan.doctor.endpoint import Endpoints
from ragspan.doctor.findings import Diagnosis, Finding, State
from ragspan.doctor.watching import MAX_ROOTS, WatchedRecord, captured_logs, new_record, score_in_time
from ragspan.engine import Dropped
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.sinks import sink_from
from ragspan.telemetry import semconv
from ragspan.telemetry.environment import exporter_is_configured

_SEE_JUDGE = "see the judge above, and RAGSPAN_METRIC_TIMEOUT"
_FLUSHING, _SHUTTING_DOWN = 0.7, 0.2  # shares of the time


def record_diagnosis(watched: WatchedRecord, endpoints: Endpoints) -> Diagnosis:
    """How far the record got."""
    findings = [_scoring(watched)]
    if not watched.is_sampled:
        found = f"the sampler has kept none of {MAX_ROOTS} traces: answers are not scored, and only this one was sent"
        findings.append(_finding("failed", found, "see OTEL_TRACES_SAMPLER above"))
    if not exporter_is_configured():
        found = "no exporter is configured: the span below is as it would be sent, and goes nowhere"
        findings.append(_finding("failed", found))
    elif not endpoints.takes_spans:
        findings.append(_finding("failed", "the span below was not taken", "see the endpoint above"))
    findings += _native_scores(watched)
    if all(finding.state == "ok" for finding in findings):  # else it is said there
        for complaint in dict.fromkeys(watched.complaints):
            found = f"logged on the way: {complaint}"
            findings.append(_finding("warning", found, "your application will log the same"))
    return Diagnosis(
        check="record",
        findings=[*findings, _where_to_look(watched, endpoints)],
        spans=watched.spans,
        scored=watched.result if isinstance(watched.result, ScoredRecord) else None,
    )


def _scoring(watched: WatchedRecord) -> Finding:
    """What the metrics have come to."""
    result = watched.result
    if isinstance(result, Dropped):
        advice = "see RAGSPAN_REDACT above" if result.reason == "redaction_failed" else _SEE_JUDGE
        return _finding("failed", f"the record was dropped: {result.reason}{_last(watched)}", advice)
    if result is None:
        found = f"the record was not scored in the time that there was{_last(watched)}"
        return _finding("failed", found, "see the judge above; a larger --timeout waits longer")
    scores = {metric: item.value for metric, item in result.outcomes.items() if isinstance(item, Score)}
    unscored = {metric: _reason(item) for metric, item in result.outcomes.items() if not isinstance(item, Score)}
    words = [f"{metric} {score:.2f}" for metric, score in scores.items()]
    words += [f"{metric} without a score ({reason})" for metric, reason in unscored.items()]
    state: State = "ok" if scores and not unscored else "failed"
    found = f"scored: {', '.join(words)}" if words else "there is no metric"
    return _finding(state, found, None if state == "ok" else _SEE_JUDGE, scores=scores, unscored=unscored)


def _reason(outcome: NotApplicable | MetricFailure) -> str:
    return outcome.reason if isinstance(outcome, NotApplicable) else outcome.error_type


def _native_scores(watched: WatchedRecord) -> Iterator[Finding]:
    """Whether backends with scores of their own have taken them."""
    for name, stats in watched.written.items():
        lost = {**stats.refused, **stats.dropped}
        advice = (
            f"see docs/tracing-tools.md for the address and the credentials of {name}; the span has to go there, too"
        )
        if lost:
            yield _finding("failed", f"{name} has not taken {sum(lost.values())} scores: {', '.join(lost)}", advice)
        elif stats.waiting or not stats.delivered:
            found = f"{name} has not taken the scores in the time that there was{_last(watched)}"
            yield _finding("failed", found, advice)
        else:
            yield _finding("ok", f"{name} has taken {stats.delivered} scores")


def _where_to_look(watched: WatchedRecord, endpoints: Endpoints) -> Finding:
    """The ids by which the record is found where it has arrived."""
    record_id = watched.record.record_id
    own = [span for span in watched.spans if (span.attributes or {}).get(semconv.RECORD_ID) == record_id]
    span_id = next((span.context.span_id for span in own if span.context), watched.root.span_id)
    ids = {"trace_id": f"{watched.root.trace_id:032x}", "span_id": f"{span_id:016x}", "record_id": record_id}
    was_sent = exporter_is_configured() and endpoints.takes_spans
    search = (endpoints.backend or RECEIVER).search.format(record_id=record_id, trace_id=ids["trace_id"])
    return _finding(
        "ok", ", ".join(f"{name} {value}" for name, value in ids.items()), search if was_sent else None, **ids
    )


def _last(watched: WatchedRecord) -> str:
    return f": {watched.complaints[-1]}" if watched.complaints else ""


def _finding(state: State, found: str, advice: str | None = None, **facts: object) -> Finding:
    return Finding(check="record", state=state, found=found, advice=advice, facts=facts)


# Where the record leaves this process ---------------------------------------------------------------------------------


def pass_through_helper(settings: Settings, seconds: float) -> Finding:
    """Have a record scored and exported by the helper process. What goes wrong there is logged here."""
    with captured_logs() as complaints:
        engine = engine_from(dataclasses.replace(settings, emitters=("otel",)))
        result = score_in_time(engine, new_record(), seconds * _FLUSHING)
        is_out = engine.flush(seconds * _SHUTTING_DOWN)
        engine.shutdown(0)
    if isinstance(result, ScoredRecord) and is_out and not complaints:
        return Finding(check="helper", state="ok", found="the helper process has scored and exported it")
    reason = complaints[-1] if complaints else "it was not done in the time that there was"
    return Finding(
        check="helper",
        state="failed",
        found=f"the helper process has not exported it: {reason}",
        advice="set RAGSPAN_EXPORT=application, or see that the helper can start; a larger --timeout waits longer",
    )


def publish_record(settings: Settings, seconds: float) -> Finding:
    """Hand one record to the sink of `RAGSPAN_SINK`, and say whether it was taken."""
    with captured_logs() as complaints:
        try:
            sink: Any = sink_from(settings)  # of an engine's methods, a sink needs no more than `submit`
        except ConfigurationError as error:
            return Finding(check="sink", state="failed", found=str(error), is_misuse=True)
        record = new_record()
        sink.submit(record)
        is_out = sink.flush(seconds * _FLUSHING) if callable(getattr(sink, "flush", None)) else None
        dropped = _dropped(sink)
        if callable(getattr(sink, "shutdown", None)):
            sink.shutdown(seconds * _SHUTTING_DOWN)
    return _published(record.record_id, complaints, is_out=is_out, dropped=dropped)


def _published(
    record_id: str, complaints: Sequence[str], *, is_out: bool | None, dropped: Mapping[str, int]
) -> Finding:
    state: State = "failed"
    advice: str | None = (
        "is it at the address of RAGSPAN_SINK, does it know these credentials, and has its stream room?"
    )
    facts: dict[str, object] = {"record_id": record_id, "dropped": dict(dropped)}
    if dropped or is_out is False:
        reasons = ", ".join(dropped) or "not taken in the time that there was"
        found = f"the broker has not taken a record ({reasons})" + (f": {complaints[-1]}" if complaints else "")
    elif is_out:
        state, found = "ok", f"the broker has taken a record, record_id {record_id}"
        advice = "a worker scores it: its span has this record id"
    else:
        state, advice = "warning", None
        found = f"a record was submitted, record_id {record_id}; this sink does not say what becomes of it"
    return Finding(check="sink", state=state, found=found, advice=advice, facts=facts)


def _dropped(sink: Any) -> Mapping[str, int]:
    stats = getattr(sink, "stats", None)
    dropped = getattr(stats() if callable(stats) else None, "dropped", None)
    return dropped if isinstance(dropped, Mapping) else {}
