"""Makes the checks in order, each within its time, whatever it meets.

Guarantees:
- A check ends when its time is up. What hangs goes on hanging in a daemon thread, and the diagnosis says so. Importing
  the judge's libraries takes as long as it takes.
- Nothing that a check raises comes through: it becomes a finding without a traceback.
- No finding leaves here with a secret in it.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from ragspan.config import Settings
from ragspan.doctor.endpoint import endpoint_findings
from ragspan.doctor.findings import Check, Diagnosis, Finding
from ragspan.doctor.judge import judge_finding
from ragspan.doctor.record import pass_through_helper, publish_record, record_diagnosis
from ragspan.doctor.redaction import Redactor
from ragspan.doctor.settings import read_settings
from ragspan.doctor.telemetry import examine_telemetry, sdk_is_disabled
from ragspan.doctor.watching import captured_logs, watch_record
from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import Judge
from ragspan.judges.named import judge_from
from ragspan.telemetry.environment import exporter_is_configured

_INNER = 0.9  # share of a check's time after which it ends by itself, with more to say
_WATCHED: tuple[Check, ...] = ("judge", "endpoint", "record")
_SCORED_ELSEWHERE = (
    "RAGSPAN_SINK sends records to workers, which score and export them: run `ragspan doctor` with a worker's "
    "environment, and without RAGSPAN_SINK"
)


def examine(*, timeout: float = 10.0) -> Iterator[Diagnosis]:
    """Make the checks, one after the other; each diagnosis comes as soon as it is there.

    Args:
        timeout: seconds that each check may take, more than 0. The judge, the endpoint and the record are one check.
    """
    redactor = Redactor()
    for diagnosis in _diagnoses(timeout):
        yield dataclasses.replace(diagnosis, findings=[redactor.finding(finding) for finding in diagnosis.findings])


def _diagnoses(timeout: float) -> Iterator[Diagnosis]:
    with captured_logs():  # the unknown names are logged, too
        settings, findings = read_settings()
    yield Diagnosis(check="settings", findings=findings)
    if settings is not None and settings.enabled and settings.sink is not None:
        sink = settings
        yield from within(
            timeout, "sink", lambda: [Diagnosis(check="sink", findings=[publish_record(sink, timeout * _INNER)])]
        )
        yield from (_skipped(check, _SCORED_ELSEWHERE) for check in ("telemetry", *_WATCHED))
        return
    yield from within(
        timeout, "telemetry", lambda: [Diagnosis(check="telemetry", findings=examine_telemetry(settings))]
    )
    reason = _reason_to_skip(settings)
    if settings is None or reason:
        yield from (_skipped(check, reason) for check in _WATCHED)
        return
    try:
        judge = judge_from(settings)  # without a limit: the first import of a provider's client takes seconds
    except ConfigurationError as error:
        yield Diagnosis(check="judge", findings=[_misuse("judge", error)])
        yield from (_skipped(check, "without a judge there is no engine to make") for check in _WATCHED[1:])
        return
    usable, seconds = settings, timeout * _INNER
    watched = within(timeout, "record", lambda: _watched(usable, judge, seconds))
    yield from watched
    if settings.export == "helper" and exporter_is_configured() and not any(each.failed for each in watched):
        yield from within(
            timeout, "helper", lambda: [Diagnosis(check="helper", findings=[pass_through_helper(usable, seconds)])]
        )


def _watched(settings: Settings, judge: Judge, seconds: float) -> Sequence[Diagnosis]:
    """One record, and what it says about everything on its way."""
    try:
        watched = watch_record(settings, seconds * 0.9)
    except ConfigurationError as error:
        return [Diagnosis(check="record", findings=[_misuse("record", error)])]
    endpoints = endpoint_findings(watched, seconds * 0.1)
    return [
        Diagnosis(check="judge", findings=[judge_finding(settings, judge, watched)]),
        Diagnosis(check="endpoint", findings=endpoints.findings),
        record_diagnosis(watched, endpoints),
    ]


def _reason_to_skip(settings: Settings | None) -> str:
    if settings is None:
        return "the settings cannot be used, so there is no engine to make"
    if not settings.enabled:
        return "RAGSPAN_ENABLED turns ragspan off"
    return "OTEL_SDK_DISABLED is true: there are no spans to put scores on" if sdk_is_disabled() else ""


def within(timeout: float, check: Check, make: Callable[[], Sequence[Diagnosis]]) -> Sequence[Diagnosis]:
    """What the check comes to, or that it does not end."""
    results: queue.SimpleQueue[Sequence[Diagnosis]] = queue.SimpleQueue()
    threading.Thread(target=lambda: results.put(_made(check, make)), name=f"ragspan-{check}", daemon=True).start()
    try:
        return results.get(timeout=timeout)
    except queue.Empty:
        hung = Finding(
            check=check,
            state="failed",
            found=f"the check did not end within {timeout:g} s",
            advice="something on the way hangs; a larger --timeout may show what",
        )
        return [Diagnosis(check=check, findings=[hung], is_hanging=True)]


def _made(check: Check, make: Callable[[], Sequence[Diagnosis]]) -> Sequence[Diagnosis]:
    try:
        return make()
    except BaseException as error:  # noqa: BLE001 - whatever it is, somebody looks for help and gets no traceback
        found = f"the check itself failed: {type(error).__name__}: {error}"
        failed = Finding(check=check, state="failed", found=found, advice="a defect of ragspan: please report it")
        return [Diagnosis(check=check, findings=[failed])]


def _misuse(check: Check, error: ConfigurationError) -> Finding:
    return Finding(check=check, state="failed", found=str(error), is_misuse=True)


def _skipped(check: Check, reason: str) -> Diagnosis:
    return Diagnosis(check=check, findings=[Finding(check=check, state="skipped", found=reason)])
