"""Metrics and judges by the names that settings have for them: wherever metrics are taken, names are taken too.

A verifier of another package is an entry point of the group `ragspan_verifier`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ragspan.config import METRIC_NAMES, Settings
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part
from ragspan.judges.base import Judge, Verifier
from ragspan.metrics.base import JudgedMetric, Metric
from ragspan.metrics.contexts import ChunkAttribution, ChunkUtilization, ContextRelevance, ContextUtilization
from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.polled import AnswerRelevance, Completeness, ContextAdherence
from ragspan.metrics.reference import Reference

_METRICS: dict[str, Callable[..., JudgedMetric[Any]]] = {
    kind.name: kind
    for kind in (
        *(ContextAdherence, Completeness, ContextUtilization, Faithfulness),
        *(AnswerRelevance, ContextRelevance, ChunkAttribution, ChunkUtilization),
    )
}


def metrics_from(
    settings: Settings, chosen: Iterable[str | Metric] | None = None, *, judge: Judge | None = None
) -> list[Metric]:
    """The chosen metrics, in order; each name gives its metric once.

    Args:
        settings: have the judge of the metrics that are given by name, and the options of HHEM.
        chosen: names and metrics; None is those of the settings.
        judge: in place of the settings' one.

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
    # A name gives nothing the second time; two metrics of one name are an error that the engine raises.
    metrics = [made.pop(metric, None) if isinstance(metric, str) else metric for metric in wanted]
    return [metric for metric in metrics if metric is not None]


def references_from(settings: Settings, metrics: Iterable[Metric]) -> list[Reference]:
    """For each of the metrics a reference by the settings' reference judge, if there is one."""
    if settings.reference_judge is None:
        return []
    judge = judge_from(replace(settings, judge=settings.reference_judge))
    kinds = [type(metric) for metric in metrics if isinstance(metric, JudgedMetric)]
    return [Reference(kind=kind, judge=judge) for kind in kinds if kind in _METRICS.values()]


def _metric(name: str, settings: Settings, judge: Judge | None) -> Metric:
    if name in {ContextAdherence.name, Faithfulness.name}:
        return _METRICS[name](judge, causes=settings.causes, llm_causes=settings.llm_causes)
    if name in _METRICS:
        return _METRICS[name](judge)
    assert judge is not None  # noqa: S101  there is one wherever a name is
    return FaithfulnessWithHHEM(judge, hhem_from(settings))


def judge_from(settings: Settings) -> Judge:
    """The judge that these settings name."""
    kind, _, model = settings.judge.partition(":")
    if kind == "overlap":
        from ragspan.judges.overlap import OverlapJudge

        return OverlapJudge()
    from ragspan.judges.openai import OpenAIJudge
    from ragspan.judges.prices import Price

    return OpenAIJudge(
        model,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        price=Price(*settings.judge_price) if settings.judge_price is not None else None,
    )


def hhem_from(settings: Settings) -> Verifier:
    """The classifier that these settings describe.

    Raises:
        ConfigurationError: its package is not installed.
    """
    options = {} if settings.hhem_model is None else {"model": settings.hhem_model}
    return installed_verifier("hhem")(device=settings.hhem_device, **options)


def installed_verifier(name: str) -> Callable[..., Verifier]:
    """The class of the verifier that an installed package registers with this name.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    missing = f"no installed package has the verifier {name!r}: pip install 'ragspan[{name}]'"
    verifier: Callable[..., Verifier] = load_part("ragspan_verifier", name, missing)
    return verifier


def require_known(name: str, names: Sequence[str] = METRIC_NAMES) -> None:
    """Raise a `ConfigurationError` that lists the names unless one of them is this one."""
    if name in names:
        return
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise ConfigurationError(f"there is no metric {name!r} here; there are: {', '.join(names)}{guess}")
