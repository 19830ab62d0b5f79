"""Counts what a peer got right of the cases that ragspan's tests make up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from capturing.grading import FAULTS

CaseReport: TypeAlias = Mapping[str, Any]
"""A `capturing.cases.Case` as data."""

FAILED = "program failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """One row of the table."""

    framework: str
    peer: str
    version: str
    cases: int
    cases_right: int
    """Cases all of whose requests are right, and beside which nothing was made up."""
    requests: int
    requests_right: int
    requests_strictly_right: int
    requests_of_unknown_contexts: int
    """Requests of which the library says that nobody can know the contexts."""
    faults: Mapping[str, int]
    """Requests with each fault; those made up, and cases whose program failed."""
    themes: Mapping[str, tuple[int, int]]
    """By theme: cases that are right, and cases."""
    details: Sequence[CaseReport]
    """Every case, with what was wrong in it as `faults`."""


def tally(
    framework: str, peer: str, version: str, reference: Sequence[CaseReport], reports: Sequence[CaseReport]
) -> Tally:
    """Count a peer's reports of the cases in `reference`, which are those that ragspan ran."""
    of_peer = {_key(report): report for report in reports}
    details = [_detail(case, of_peer.get(_key(case))) for case in reference]
    requests = [request for detail in details for request in _requests(detail)]
    themes = {
        theme: (
            sum(not detail["faults"] for detail in details if detail["theme"] == theme),
            sum(detail["theme"] == theme for detail in details),
        )
        for theme in dict.fromkeys(detail["theme"] for detail in details)
    }
    return Tally(
        framework=framework,
        peer=peer,
        version=version,
        cases=len(details),
        cases_right=sum(not detail["faults"] for detail in details),
        requests=sum(len(_requests(case)) for case in reference),
        requests_right=sum(not request["faults"] for request in requests),
        requests_strictly_right=sum(request["is_strictly_right"] for request in requests),
        requests_of_unknown_contexts=sum(
            bool(request["seen"]) and request["seen"]["contexts"] is None for request in requests
        ),
        faults=dict(Counter(fault for detail in details for fault in detail["faults"])),
        themes=themes,
        details=details,
    )


def are_cases(reports: Sequence[CaseReport]) -> list[CaseReport]:
    """The tests that say something of whole records; their programs run to the end with ragspan.

    Raises:
        RuntimeError: one of them does not, and so is no measure for others.
    """
    failed = [f"{report['theme']}: {report['name']}: {report['error']}" for report in reports if report["error"]]
    if failed:
        raise RuntimeError("these cases fail with ragspan itself:\n" + "\n".join(failed))
    return [report for report in reports if report["comparisons"]]


def _detail(case: CaseReport, report: CaseReport | None) -> CaseReport:
    """A peer's report with its faults; one that did not come as far as ragspan's has failed."""
    comparisons = report["comparisons"] if report else []
    faults = [fault for comparison in comparisons for request in comparison["requests"] for fault in request["faults"]]
    faults += ["made up" for comparison in comparisons for _ in comparison["made_up"]]
    if len(comparisons) < len(case["comparisons"]):
        faults.append(FAILED)
    error = report["error"] if report else None
    return {
        "theme": case["theme"],
        "name": case["name"],
        "faults": faults,
        "comparisons": comparisons,
        "error": error,
    }


def _requests(report: CaseReport) -> list[Mapping[str, Any]]:
    return [request for comparison in report["comparisons"] for request in comparison["requests"]]


def _key(report: CaseReport) -> tuple[str, str]:
    return report["theme"], report["name"]


COLUMNS = (*FAULTS, FAILED)
