"""Which metrics an evaluation is to have, and how they are told apart."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ragspan.config import METRIC_NAMES, Settings, process_environment
from ragspan.defaults import metrics_from
from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric


def settings_with(judge: Judge | str | None = None, *, concurrency: int | None = None) -> Settings:
    """The settings of this process, with another judge where one is named.

    Raises:
        ConfigurationError: there is no such judge.
    """
    environment = process_environment()
    if isinstance(judge, str):
        environment["RAGSPAN_JUDGE"] = judge
    try:
        settings = Settings.from_environment(environment)
    except ConfigurationError as error:
        if not isinstance(judge, str):
            raise
        raise ConfigurationError(str(error).replace("RAGSPAN_JUDGE is", "judge is")) from None
    return settings if concurrency is None else replace(settings, concurrency=concurrency)


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
    if chosen is None:
        wanted: Sequence[str | Metric] = settings.metrics
    elif isinstance(chosen, str):
        wanted = [name.strip() for name in chosen.split(",") if name.strip()]
    else:
        wanted = list(chosen)
    names = tuple(dict.fromkeys(metric for metric in wanted if isinstance(metric, str)))
    for name in names:
        require_known(name)
    own_judge = None if isinstance(judge, str) else judge
    by_name = {metric.name: metric for metric in _named(names, settings, own_judge)}
    # Each name gives its metric once; two metrics of the same name are an error that the engine knows to tell.
    return [
        by_name.pop(metric) if isinstance(metric, str) else metric for metric in wanted if _is_left(metric, by_name)
    ]


def _is_left(metric: str | Metric, by_name: dict[str, Metric]) -> bool:
    return not isinstance(metric, str) or metric in by_name


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


def _named(names: tuple[str, ...], settings: Settings, judge: Judge | None) -> Sequence[Metric]:
    return metrics_from(replace(settings, metrics=names), judge) if names else ()
