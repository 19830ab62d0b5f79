"""The judges in a metric's fields: which are paid for, what they import, and the same metric with another judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ragspan.engine._boundary import attempt
from ragspan.judges.session import Spender
from ragspan.metrics.base import Metric

_JUDGE = "judge"
"""The field that metrics keep their judge in."""


def spenders_of(metric: object) -> Iterator[Spender]:
    """The judges of a metric whose requests are paid for, as far as its fields show them."""
    for name in _fields_of(metric) or [_JUDGE]:
        value = getattr(metric, name, None)
        if isinstance(value, Spender) and not isinstance(value, type):
            yield value


def prepare_judges(metrics: Iterable[object], fallback: object | None) -> None:
    """Call `prepare` of the judges that have one, as an engine does that lets them compute in its own process."""
    for judge in [*(getattr(metric, _JUDGE, None) for metric in metrics), fallback]:
        prepare = getattr(judge, "prepare", None)
        if callable(prepare):
            attempt(prepare)  # a judge that cannot be had fails when it is asked


def with_judge(metric: Metric, judge: object) -> Metric | None:
    """The metric with this judge in place of its own and of all that are paid for; None if that cannot be.

    It cannot for a metric that is no dataclass with a field `judge`, and where the metric refuses this judge.
    """
    names = _fields_of(metric)
    if _JUDGE not in names:
        return None
    replaced = [name for name in names if name == _JUDGE or isinstance(getattr(metric, name), Spender)]
    try:
        return cast("Metric", replace(cast("Any", metric), **dict.fromkeys(replaced, judge)))
    except (TypeError, ValueError):  # how metrics check their arguments
        return None


def _fields_of(metric: object) -> list[str]:
    """The names of a dataclass's fields; none of anything else."""
    if not is_dataclass(metric) or isinstance(metric, type):
        return []
    return [field.name for field in fields(metric)]
