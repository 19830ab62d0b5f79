"""Which metrics an evaluation is to have, and how they are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from ragspan.config import Settings
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric
from ragspan.metrics.named import metrics_from


def metrics_for(
    chosen: str | Iterable[str | Metric] | None, settings: Settings, judge: Judge | str | None = None
) -> list[Metric]:
    """The metrics of an evaluation.

    Args:
        chosen: names, separated by commas or in a list, and metrics; None stands for those of the settings.
        settings: with the judge of those that are given by name.
        judge: to be taken in place of the settings', if it is one and not a name.

    Raises:
        ConfigurationError: there is no such metric, or the judge cannot answer what it asks.
    """
    wanted = [name.strip() for name in chosen.split(",") if name.strip()] if isinstance(chosen, str) else chosen
    return metrics_from(settings, wanted, judge=None if isinstance(judge, str) else judge)


def described(metric: Metric) -> dict[str, Any]:
    """What tells a metric from another, or from itself with other settings, in plain data; no key and no address."""
    about: dict[str, Any] = {"name": metric.name}
    data: Any = metric
    if is_dataclass(data):
        for item in fields(data):
            value = getattr(data, item.name)
            if isinstance(value, (str, int, float)) or value is None:
                about[item.name] = value
            elif isinstance(name := getattr(value, "name", None), str):
                version = getattr(value, "prompt_version", None)
                about[item.name] = f"{name}, prompts {version}" if isinstance(version, str) else name
    return about
