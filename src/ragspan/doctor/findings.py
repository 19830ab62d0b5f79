"""What a check says: one finding a line, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ragspan.outcomes import ScoredRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

Check: TypeAlias = Literal["settings", "sink", "telemetry", "judge", "endpoint", "record", "helper"]
State: TypeAlias = Literal["ok", "warning", "failed", "skipped"]

CHECKS: tuple[Check, ...] = get_args(Check)
"""In the order in which they are made; the sink and the helper only where there is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that a check found out."""

    check: Check
    state: State
    """`warning` may keep some scores from being seen, `failed` does; `skipped` could not be looked at."""
    found: str
    advice: str | None = None
    """What to do, where there is something to do or to know."""
    is_misuse: bool = False
    """A setting has a value that cannot be used at all."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """The figures and names in `found` by themselves, as JSON knows them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """All that one check came to."""

    check: Check
    findings: Sequence[Finding]
    spans: Sequence[ReadableSpan] = ()
    """The spans that were made, to be shown as a trace."""
    scored: ScoredRecord | None = None
    """The outcomes on the answer's span."""
    is_hanging: bool = False
    """Something that the check began has not ended, and never may."""

    @property
    def failed(self) -> bool:
        return any(finding.state == "failed" for finding in self.findings)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if nothing failed, 2 if a setting cannot be used, 1 if something else failed."""
    failures = [finding for finding in findings if finding.state == "failed"]
    return 2 if any(finding.is_misuse for finding in failures) else int(bool(failures))
