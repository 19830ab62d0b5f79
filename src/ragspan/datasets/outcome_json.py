"""Outcomes as plain data and back, evidence included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics._contexts import JudgedContext
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage

_EVIDENCE = {kind.__name__: kind for kind in (Vote, Rating, ClaimVerdict, ContextVerdict, ContextRating, JudgedContext)}


def plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """What JSON can hold of an outcome; fields that have their default are left out."""
    plain = {"is": type(outcome).__name__, **_changed(outcome)}
    if isinstance(outcome, Score):
        plain["value"] = float(outcome.value)
        if outcome.evidence:
            plain["evidence"] = [_plain_evidence(item) for item in outcome.evidence]
        if outcome.details:
            plain["details"] = {str(name): value for name, value in outcome.details.items() if _is_scalar(value)}
        if outcome.usage is not None:
            plain["usage"] = _changed(outcome.usage)
    return plain


def outcome_from(plain: Mapping[str, Any]) -> Outcome:
    """The outcome that `plain_outcome` took apart; evidence of a metric of one's own comes back as dictionaries.

    Raises:
        Exception: it did not.
    """
    values = dict(plain)
    kind = values.pop("is")
    if kind == "NotApplicable":
        return NotApplicable(**values)
    if kind == "MetricFailure":
        return MetricFailure(**values)
    values["evidence"] = tuple(map(_evidence_from, values.get("evidence", ())))
    if "usage" in values:
        values["usage"] = Usage(**values["usage"])
    return Score(**values)


def _changed(data: Any) -> dict[str, Any]:
    """The scalar fields that have another value than None."""
    values = {item.name: getattr(data, item.name) for item in fields(data)}
    return {name: value for name, value in values.items() if _is_scalar(value)}


def _plain_evidence(item: object) -> Any:
    if is_dataclass(item) and not isinstance(item, type):
        return {"is": type(item).__name__, **_changed(item)}
    if isinstance(item, Mapping):
        return {str(key): value for key, value in item.items() if _is_scalar(value)}
    return item if _is_scalar(item) else type(item).__name__


def _is_scalar(value: object) -> bool:
    """Whether JSON has it; it has no NaN."""
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _evidence_from(plain: Any) -> object:
    kind = _EVIDENCE.get(plain.get("is", "")) if isinstance(plain, dict) else None
    if kind is None:
        return plain
    optional = {item.name: None for item in fields(kind) if "None" in str(item.type)}
    return kind(**{**optional, **{name: value for name, value in plain.items() if name != "is"}})
