"""Metrics by name: wherever metrics are taken, names are taken too."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ragspan.config import METRIC_NAMES, Settings
from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import Judge
from ragspan.judges.named import hhem_from, judge_from
from ragspan.metrics.base import JudgedMetric, Metric
from ragspan.metrics.contexts import ChunkAttribution, ChunkUtilization, ContextRelevance, ContextUtilization
from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.polled import AnswerRelevance, Completeness, ContextAdherence
from ragspan.metrics.reference import Reference

_METRICS: dict[str, Callable[..., Metric]] = {  # each checks for itself whether the judge can answer it
    "context_adherence": ContextAdherence,
    "completeness": Completeness,
    "context_utilization": ContextUtilization,
    "faithfulness": Faithfulness,
    "answer_relevance": AnswerRelevance,
    "context_relevance": ContextRelevance,
    "chunk_attribution": ChunkAttribution,
    "chunk_utilization": ChunkUtilization,
}


def metrics_from(
    settings: Settings, chosen: Iterable[str | Metric] | None = None, *, judge: Judge | None = None
) -> list[Metric]:
    """The chosen metrics, in order; each name gives its metric once.

    Args:
        settings: name the judge of the metrics that are given by name, and describe HHEM.
        chosen: names and metrics; None stands for the settings' own.
        judge: in place of the one that the settings name.

    Raises:
        ConfigurationError: there is no such metric, or the judge cannot answer what one of them asks.
    """
    wanted = list(dict.fromkeys(settings.metrics)) if chosen is None else list(chosen)
    names = [metric for metric in wanted if isinstance(metric, str)]
    for name in names:
        require_known(name)
    if names and judge is None:
        judge = judge_from(settings)
    made = {name: _metric(name, settings, judge) for name in dict.fromkeys(names)}
    # A name that comes twice gives nothing the second time; two metrics of one name are an error that the engine tells.
    metrics = [made.pop(metric, None) if isinstance(metric, str) else metric for metric in wanted]
    return [metric for metric in metrics if metric is not None]


def references_from(settings: Settings, metrics: Iterable[Metric]) -> list[Reference]:
    """A reference by the judge that the settings name for it, of each of the metrics that pass or fail an answer by a judge."""
    if settings.reference_judge is None:
        return []
    judge = judge_from(replace(settings, judge=settings.reference_judge))
    kinds = [type(metric) for metric in metrics if type(metric) in _METRICS.values()]
    return [Reference(kind=kind, judge=judge) for kind in kinds if issubclass(kind, JudgedMetric)]


def _metric(name: str, settings: Settings, judge: Judge | None) -> Metric:
    if name in _METRICS:
        has_causes = name in {"context_adherence", "faithfulness"}
        return _METRICS[name](judge, **({"causes": settings.causes} if has_causes else {}))
    assert judge is not None  # noqa: S101  there is one wherever a name is
    return FaithfulnessWithHHEM(judge, hhem_from(settings))


def require_known(name: str, names: Sequence[str] = METRIC_NAMES) -> None:
    """Raise unless one of `names` is this one.

    Raises:
        ConfigurationError: none is; the message lists them.
    """
    if name in names:
        return
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise ConfigurationError(f"there is no metric {name!r} here; there are: {', '.join(names)}{guess}")
