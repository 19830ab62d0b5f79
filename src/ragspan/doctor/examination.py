"""Makes the checks in order, each within its time, whatever it comes upon.

Guarantees:
- A check ends when its time is up. What hangs goes on hanging in a daemon thread, and the diagnosis says so. Importing
  the judge's libraries, before it is asked, takes as long as it takes.
- Nothing that a check raises comes through: it becomes a finding without a traceback.
- No finding leaves here with a secret in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial

from ragspan.config import Settings
from ragspan.doctor.discretion import Discretion
from ragspan.doctor.endpoint import Endpoints, examine_endpoints
from ragspan.doctor.findings import Check, Diagnosis, Finding
from ragspan.doctor.judge import ask_judge
from ragspan.doctor.overhearing import overheard
from ragspan.doctor.publishing import SCORED_ELSEWHERE, publish_record
from ragspan.doctor.record import pass_record
from ragspan.doctor.settings import read_settings
from ragspan.doctor.telemetry import examine_telemetry
from ragspan.judges.named import judge_from

_OF_A_SCORER: tuple[Check, ...] = ("judge", "telemetry", "endpoint", "record")
_INNER = 0.9  # share of a check's time after which it is to come to an end by itself, with more to say


def examine(*, timeout: float = 10.0) -> Iterator[Diagnosis]:
    """Make the checks, one after the other; each diagnosis comes as soon as it is there.

    Args:
        timeout: seconds that each check may take, more than 0.
    """
    discretion = Discretion()
    examination = _Examination(timeout)
    for check, make in examination.checks():
        diagnosis = _within(timeout, check, make)
        yield dataclasses.replace(diagnosis, findings=[discretion.finding(finding) for finding in diagnosis.findings])


class _Examination:
    """What one check hands to the next."""

    def __init__(self, timeout: float) -> None:
        self._seconds = timeout * _INNER
        self._settings: Settings | None = None
        self._endpoints = Endpoints(takes_spans=False)

    def checks(self) -> Iterator[tuple[Check, Callable[[], Diagnosis]]]:
        yield "settings", self._check_settings
        if self._sends_records_away:
            yield "sink", self._check_sink
            for check in _OF_A_SCORER:
                yield check, partial(_skipped, check, SCORED_ELSEWHERE)
            return
        self._import_judge()
        yield "judge", self._check_judge
        yield "telemetry", self._check_telemetry
        yield "endpoint", self._check_endpoint
        yield "record", self._check_record

    @property
    def _sends_records_away(self) -> bool:
        return self._settings is not None and self._settings.enabled and self._settings.sink is not None

    def _import_judge(self) -> None:
        """Without a limit: the first import of a provider's client takes seconds, which say nothing of the judge."""
        if self._settings is not None and self._settings.enabled:
            with contextlib.suppress(Exception):  # the check will come upon it, too
                judge_from(self._settings)

    def _check_settings(self) -> Diagnosis:
        with overheard():  # the unknown names are logged, too
            self._settings, findings = read_settings()
        return Diagnosis(check="settings", findings=findings)

    def _check_sink(self) -> Diagnosis:
        if self._settings is None:
            return _skipped("sink", "the settings cannot be used")
        return publish_record(self._settings, self._seconds)

    def _check_judge(self) -> Diagnosis:
        if self._settings is None:
            return _skipped("judge", "the settings cannot be used, so it is not known which judge to ask")
        if not self._settings.enabled:
            return _skipped("judge", "RAGSPAN_ENABLED turns ragspan off")
        with overheard():
            return Diagnosis(check="judge", findings=ask_judge(self._settings, self._seconds))

    def _check_telemetry(self) -> Diagnosis:
        return Diagnosis(check="telemetry", findings=examine_telemetry(self._settings))

    def _check_endpoint(self) -> Diagnosis:
        self._endpoints = examine_endpoints(self._seconds)
        return Diagnosis(check="endpoint", findings=self._endpoints.findings)

    def _check_record(self) -> Diagnosis:
        if self._settings is None:
            return _skipped("record", "the settings cannot be used, so there is no engine to make")
        return pass_record(self._settings, self._endpoints, self._seconds)


def _within(timeout: float, check: Check, make: Callable[[], Diagnosis]) -> Diagnosis:
    """What the check comes to, or that it does not."""
    answers: queue.SimpleQueue[Diagnosis] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_made(check, make)), name=f"ragspan-{check}", daemon=True).start()
    try:
        return answers.get(timeout=timeout)
    except queue.Empty:
        hung = Finding(
            check=check,
            state="failed",
            found=f"the check did not end within {timeout:g} s",
            advice="something on the way hangs; a larger --timeout may show what",
        )
        return Diagnosis(check=check, findings=[hung], is_hanging=True)


def _made(check: Check, make: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return make()
    except BaseException as error:  # noqa: BLE001 - whatever it is, somebody looks for help and gets no traceback
        found = f"the check itself failed: {type(error).__name__}: {error}"
        failed = Finding(check=check, state="failed", found=found, advice="a defect of ragspan: please report it")
        return Diagnosis(check=check, findings=[failed])


def _skipped(check: Check, reason: str) -> Diagnosis:
    return Diagnosis(check=check, findings=[Finding(check=check, state="skipped", found=reason)])
