"""The judges in a metric's fields: which ones cost money, which ones compute, and the embedded judge in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ragspan.judges.jury import Jury
from ragspan.judges.screen import OverlapJudge
from ragspan.judges.session import Spender
from ragspan.metrics.metric import Metric

_JUDGE = "judge"
"""The field that metrics keep their judge in."""


def spenders_of(metric: object) -> Iterator[Spender]:
    """The judges in a metric's fields whose requests cost money."""
    return (value for _, value in _values_of(metric) if isinstance(value, Spender) and not isinstance(value, type))


def are_cpu_bound(metric: object) -> list[bool | None]:
    """Whether each judge of a metric is `cpu_bound`, see `Judge`; None for a judge that does not say."""
    said = [
        getattr(value, "cpu_bound", None)
        for name, value in _values_of(metric)
        if value is not None and (name == _JUDGE or hasattr(value, "verify_claims"))
    ]
    return [answer if isinstance(answer, bool) else None for answer in said]


def with_embedded_judge(metric: Metric) -> Metric | None:
    """The metric with the embedded judge in place of its own and of all that cost money; None if it has no such field, or refuses it."""
    names = _fields_of(metric)
    if _JUDGE not in names:
        return None
    replaced = [name for name in names if name == _JUDGE or isinstance(getattr(metric, name), Spender)]
    try:
        return cast("Metric", replace(cast("Any", metric), **dict.fromkeys(replaced, OverlapJudge())))
    except (TypeError, ValueError):  # how metrics check their arguments
        return None


def screens_of(metrics: Iterable[Metric]) -> dict[str, Metric | None]:
    """By name, the metrics that ask another judge than the embedded one, each as that scores it; None if it cannot."""
    own = OverlapJudge()
    asking = [metric for metric in metrics if not isinstance(getattr(metric, _JUDGE, own), OverlapJudge)]
    return {metric.name: with_embedded_judge(metric) for metric in asking}


def _values_of(metric: object) -> Iterator[tuple[str, object]]:
    """What is in a metric's fields, with their names; of a jury its judges."""
    for name in _fields_of(metric) or [_JUDGE]:
        value = getattr(metric, name, None)
        yield from ((name, one) for one in (value.judges if isinstance(value, Jury) else [value]))


def _fields_of(metric: object) -> list[str]:
    """The names of a dataclass's fields; none of anything else."""
    return [field.name for field in fields(metric)] if is_dataclass(metric) and not isinstance(metric, type) else []
