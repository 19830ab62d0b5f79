"""Scores with all that their metrics say about them alike: who judged, in which words, by how much of the texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ragspan.outcomes import Label, Score
from ragspan.records import RagRecord


class Named(Protocol):
    @property
    def name(self) -> str: ...


def judged_score(
    record: RagRecord,
    judge: Named,
    *,
    value: float,
    explanation: str | None,
    threshold: float,
    evidence: Sequence[object],
    details: Mapping[str, float],
    label: Label | None = None,
    verifier: Named | None = None,
) -> Score:
    """The score of a record.

    Its `details` hold `read` where the judge did not get to see all of the texts: the share of characters that it did.
    Where a verifier gave the verdicts, it is the one who judged; the judge's prompts still had their part in it.
    """
    # What `Judge` says that a judge may have besides.
    share_read: Callable[[RagRecord], float] | None = getattr(judge, "share_read", None)
    read = 1.0 if share_read is None else share_read(record)
    return Score(
        value=value,
        explanation=explanation,
        threshold=threshold,
        label=label,
        evidence=tuple(evidence),
        details=dict(details) | ({"read": read} if read < 1 else {}),
        judge=(verifier or judge).name,
        prompt_version=getattr(judge, "prompt_version", None),
    )
