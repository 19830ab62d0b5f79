"""The fifth check: one real record, through a real engine, to where scores are to go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ragspan.config import Settings
from ragspan.doctor.answers import meaning_of
from ragspan.doctor.backends import RECEIVER
from ragspan.doctor.endpoint import Endpoints
from ragspan.doctor.findings import Diagnosis, Finding, State
from ragspan.doctor.journey import MAX_ROOTS, Journey, make_journey
from ragspan.doctor.telemetry import sdk_is_disabled
from ragspan.engine import EngineStats
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.environment import exporter_is_configured


def pass_record(settings: Settings, endpoints: Endpoints, seconds: float) -> Diagnosis:
    """Submit one record as an application would, and tell how far it got."""
    reason = _reason_to_skip(settings)
    if reason:
        return Diagnosis(check="record", findings=[_finding("skipped", reason)])
    try:
        journey = make_journey(settings, seconds, is_sent=exporter_is_configured() and endpoints.takes_spans)
    except ConfigurationError as error:
        wrong = Finding(check="record", state="failed", found=str(error), is_misuse=True)
        return Diagnosis(check="record", findings=[wrong])
    if journey is None:
        found = f"the sampler has kept none of {MAX_ROOTS} traces, so there is none to score an answer on"
        return Diagnosis(check="record", findings=[_finding("failed", found, "see OTEL_TRACES_SAMPLER above")])
    findings = [_scoring(journey), _delivery(journey, endpoints), *_native_scores(journey)]
    if all(finding.state == "ok" for finding in findings):  # else it is told there
        findings += _remarks(journey)
    return Diagnosis(check="record", findings=[*findings, _where_to_look(journey, endpoints)], spans=journey.spans)


def _reason_to_skip(settings: Settings) -> str | None:
    if not settings.enabled:
        return "RAGSPAN_ENABLED turns ragspan off"
    if sdk_is_disabled():
        return "OTEL_SDK_DISABLED is true: there are no spans to put scores on"
    return None


def _scoring(journey: Journey) -> Finding:
    """What the metrics have come to."""
    if not journey.stats.scored:
        return _finding(
            "failed",
            "the record was not scored in the time that there was" + _last(journey.complaints),
            "see the judge above; a larger --timeout waits longer",
            stats=_counts(journey.stats),
        )
    if journey.is_in_helper:
        wrong = journey.stats.errors.get("metric", 0)
        found = "the helper process has scored the record"
        if wrong:
            return _finding("failed", f"{found}, but {wrong} metrics failed{_last(journey.complaints)}", _SEE_JUDGE)
        return _finding("ok", f"{found}; its scores are on the span that it exports")
    scores = {outcome.metric: outcome.score for outcome in journey.outcomes if outcome.score is not None}
    unscored = {outcome.metric: outcome.reason for outcome in journey.outcomes if outcome.score is None}
    words = [f"{metric} {score:.2f}" for metric, score in scores.items()]
    words += [f"{metric} without a score ({reason})" for metric, reason in unscored.items()]
    state: State = "ok" if scores and not unscored else "failed"
    found = f"scored: {', '.join(words)}" if words else "no metric has come to anything"
    return _finding(state, found, None if state == "ok" else _SEE_JUDGE, scores=scores, unscored=unscored)


_SEE_JUDGE = "see the judge above, and RAGSPAN_METRIC_TIMEOUT"


def _delivery(journey: Journey, endpoints: Endpoints) -> Finding:
    """Whether the span with the scores has got out."""
    if not exporter_is_configured():
        return _finding("failed", "no exporter is configured: the span below is as it would be sent, and goes nowhere")
    if not endpoints.takes_spans:
        return _finding("failed", "not sent, since the endpoint above takes no spans: the span is as it would be sent")
    if journey.is_in_helper:
        return _delivery_by_helper(journey)
    spans = {span.context.span_id for span in journey.spans if span.context}
    if spans & journey.journal.refused:
        return _finding("failed", "the exporter could not send the span" + _last(journey.complaints), _SEE_ENDPOINT)
    if spans - journey.journal.taken:
        found = "the exporter was not done with the span in the time that there was" + _last(journey.complaints)
        return _finding("failed", found, _SEE_ENDPOINT)
    for answer in journey.journal.answers[-1:]:
        meaning = meaning_of(answer, "traces")
        state: State = "ok" if meaning.is_taken else "failed"
        verb = "the endpoint has taken" if meaning.is_taken else "the endpoint has not taken"
        return _finding(state, f"{verb} the span: {meaning.found}", meaning.advice, status=answer.status)
    return _finding("ok", "the exporter says that it has sent the span")


_SEE_ENDPOINT = "see the endpoint above"


def _native_scores(journey: Journey) -> Iterator[Finding]:
    """Whether backends with scores of their own have taken them."""
    for name, stats in journey.written.items():
        lost = {**stats.refused, **stats.dropped}
        if lost:
            found = f"{name} has not taken {sum(lost.values())} scores: {', '.join(lost)}"
            yield _finding("failed", found, _SEE_WRITER.format(name=name))
        elif stats.waiting or not stats.delivered:
            found = f"{name} has not taken the scores in the time that there was{_last(journey.complaints)}"
            yield _finding("failed", found, _SEE_WRITER.format(name=name))
        else:
            yield _finding("ok", f"{name} has taken {stats.delivered} scores")


_SEE_WRITER = "see docs/tracing-tools.md for the address and the credentials of {name}; the span has to go there, too"


def _delivery_by_helper(journey: Journey) -> Finding:
    """The helper's exporter cannot be watched; what goes wrong there is logged here."""
    if journey.has_flushed and not journey.complaints:
        return _finding("ok", "the helper process has exported the span, and nothing was logged against it")
    found = "the helper process did not export the span" + (_last(journey.complaints) or " in the time that there was")
    return _finding("failed", found, "see the endpoint above, or set RAGSPAN_EXPORT=application")


def _remarks(journey: Journey) -> Iterator[Finding]:
    """What was logged although the record got through: a helper that cannot be started, metrics that are refused."""
    for complaint in dict.fromkeys(journey.complaints):
        yield _finding("warning", f"logged on the way: {complaint}", "your application will log the same")


def _where_to_look(journey: Journey, endpoints: Endpoints) -> Finding:
    """The ids by which the record is found where it has arrived."""
    context = journey.answer_span.context if journey.answer_span else None
    ids: dict[str, str] = {"trace_id": f"{journey.root.trace_id:032x}"}
    if context is not None and not journey.is_in_helper:
        ids["span_id"] = f"{context.span_id:016x}"
    ids["record_id"] = journey.record.record_id
    tool = endpoints.backend or RECEIVER
    advice = tool.search.format(record_id=ids["record_id"], trace_id=ids["trace_id"])
    found = ", ".join(f"{name} {value}" for name, value in ids.items())
    sent = exporter_is_configured() and endpoints.takes_spans
    return _finding("ok", found, advice if sent else None, **ids)


def _last(complaints: Sequence[str]) -> str:
    return f": {complaints[-1]}" if complaints else ""


def _counts(stats: EngineStats) -> Mapping[str, object]:
    return {"in_flight": stats.in_flight, "queued": stats.queued, "dropped": dict(stats.dropped)}


def _finding(state: State, found: str, advice: str | None = None, **facts: object) -> Finding:
    return Finding(check="record", state=state, found=found, advice=advice, facts=facts)
