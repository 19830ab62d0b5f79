"""The check of an application that scores nothing itself: one record, handed to the sink that `RAGSPAN_SINK` names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ragspan.config import Settings
from ragspan.doctor.findings import Diagnosis, Finding
from ragspan.doctor.overhearing import overheard
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord
from ragspan.sinks import sink_from

SCORED_ELSEWHERE = (
    "RAGSPAN_SINK sends records to workers, which score and export them: run `ragspan doctor` with a worker's "
    "environment, and without RAGSPAN_SINK"
)
_FLUSHING = 0.7  # shares of the time that there is
_SHUTTING_DOWN = 0.2


def publish_record(settings: Settings, seconds: float) -> Diagnosis:
    """Submit one record to the sink, and tell whether it was taken."""
    with overheard() as complaints:
        try:
            sink: Any = sink_from(settings)  # of the methods that an engine has, a sink needs no more than `submit`
        except ConfigurationError as error:
            wrong = Finding(check="sink", state="failed", found=str(error), is_misuse=True)
            return Diagnosis(check="sink", findings=[wrong])
        record = _record()
        sink.submit(record)
        flush = getattr(sink, "flush", None)
        is_out = flush(seconds * _FLUSHING) if callable(flush) else None
        dropped = _dropped(sink)
        shutdown = getattr(sink, "shutdown", None)
        if callable(shutdown):
            shutdown(seconds * _SHUTTING_DOWN)
    return Diagnosis(check="sink", findings=[_finding(record, complaints, is_out=is_out, dropped=dropped)])


def _finding(record: RagRecord, complaints: list[str], *, is_out: bool | None, dropped: Mapping[str, int]) -> Finding:
    if is_out and not dropped:
        return Finding(
            check="sink",
            state="ok",
            found=f"the broker has taken a record, record_id {record.record_id}",
            advice="a worker scores it: its span has this record id",
            facts={"record_id": record.record_id},
        )
    if is_out is None and not dropped:
        found = f"a record was submitted, record_id {record.record_id}; this sink does not say what becomes of it"
        return Finding(check="sink", state="warning", found=found, facts={"record_id": record.record_id})
    reasons = ", ".join(dropped) or "not taken in the time that there was"
    last = f": {complaints[-1]}" if complaints else ""
    return Finding(
        check="sink",
        state="failed",
        found=f"the broker has not taken a record ({reasons}){last}",
        advice="is it at the address of RAGSPAN_SINK, does it know these credentials, and has its stream room?",
        facts={"dropped": dict(dropped)},
    )


def _dropped(sink: Any) -> Mapping[str, int]:
    stats = getattr(sink, "stats", None)
    dropped = getattr(stats() if callable(stats) else None, "dropped", None)
    return dropped if isinstance(dropped, Mapping) else {}


def _record() -> RagRecord:
    now = time.time_ns()
    return RagRecord(
        question="Does ragspan work here?",
        contexts=["The doctor sends one record. A worker scores it like every other record."],
        response="The doctor's record is scored by a worker, like every other record.",
        name="ragspan doctor",
        started_ns=now,
        ended_ns=now,
    )
