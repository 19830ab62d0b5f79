"""The arguments of an engine, checked where it is made: a wrong one must not show itself with the first answer."""

from __future__ import annotations

import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ragspan.config import DropPolicy, ExportPlace, JudgingPlace, Settings
from ragspan.engine._metric_judges import spenders_of
from ragspan.engine.budget import Budget
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import Redact, withhold

if TYPE_CHECKING:
    from ragspan.metrics.base import Metric
    from ragspan.telemetry.base import Emitter

_PROTOCOL = 5  # of pickle
_SECONDS = "a number of seconds, 0 or more"
_SOME_SECONDS = "a number of seconds, more than 0"
_SHARE = "a number from 0 to 1"
_METRIC_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What `ScoringEngine` was given.

    Raises:
        ConfigurationError: an argument is wrong; the message names it, its value and what is allowed.
    """

    metrics: Sequence[Metric]
    emitters: Sequence[Emitter]
    queue_size: int
    queue_bytes: int
    drop: DropPolicy
    concurrency: int
    sample_rate: float
    metric_sample_rates: Mapping[str, float]
    score_unsampled: bool
    max_records_per_second: float | None
    budget: Budget | None
    metric_timeout: float
    exit_timeout: float
    judging: JudgingPlace
    export: ExportPlace
    redact: Redact | None
    name: str

    def __post_init__(self) -> None:
        for name in ("metrics", "emitters"):
            value = getattr(self, name)
            _require(name, value, "a list", fits=isinstance(value, Sequence) and not isinstance(value, (str, bytes)))
            object.__setattr__(self, name, tuple(value))  # what is changed in the list later has not been checked
        _check_metrics(self.metrics)
        _check_emitters(self.emitters)
        for name in ("queue_size", "queue_bytes", "concurrency"):
            _require_whole(name, getattr(self, name))
        _require("drop", self.drop, "'oldest' or 'newest'", fits=self.drop in {"oldest", "newest"})
        _require_number("sample_rate", self.sample_rate, _SHARE, lambda rate: 0 <= rate <= 1)
        _check_metric_rates(self.metric_sample_rates, [metric.name for metric in self.metrics])
        object.__setattr__(self, "metric_sample_rates", dict(self.metric_sample_rates))
        if self.max_records_per_second is not None:
            _require_number(
                "max_records_per_second",
                self.max_records_per_second,
                "a number above 0",
                lambda rate: 0 < rate < math.inf,
            )
        if self.budget is not None:
            _check_budget(self.budget, self.metrics)
        _require_number("metric_timeout", self.metric_timeout, _SOME_SECONDS, lambda time: 0 < time < math.inf)
        _require_number("exit_timeout", self.exit_timeout, _SECONDS, lambda time: 0 <= time < math.inf)
        _require("judging", self.judging, "'helper' or 'thread'", fits=self.judging in {"helper", "thread"})
        _require("export", self.export, "'application' or 'helper'", fits=self.export in {"application", "helper"})
        _require_text("name", self.name)
        if self.export == "helper":
            _check_travel(self.metrics, self.emitters)
            if self.budget is not None:
                object.__setattr__(self, "budget", _budget_to_travel(self.budget, self.metrics))

    def to_travel(self) -> bytes:
        """What the helper process makes its engine from.

        Records are redacted before they go there. Explanations are made there, and left out where `redact` cannot go along.
        """
        travels = self.redact is None or _reason_not_to_travel(self.redact) is None
        return pickle.dumps(self if travels else replace(self, redact=withhold), _PROTOCOL)

    @property
    def score_wait(self) -> float:
        """The longest, in seconds, that any of the emitters waits."""
        return max((emitter.score_wait for emitter in self.emitters), default=0.0)


def with_named(metrics: Sequence[str | Metric]) -> Sequence[Metric]:
    """The metrics, those that are given by name made with the judge that the environment names.

    Raises:
        ConfigurationError: there is no metric of a name, or the judge cannot answer what it asks.
    """
    if isinstance(metrics, str) or not any(isinstance(metric, str) for metric in metrics):
        return cast("Sequence[Metric]", metrics)  # what is no list of metrics is refused with the other arguments
    from ragspan.metrics.named import metrics_from

    return metrics_from(Settings.from_environment(), metrics)


def _check_metrics(metrics: Sequence[object]) -> None:
    names: list[str] = []
    for position, metric in enumerate(metrics):
        argument = f"metrics[{position}]"
        _require_object(argument, metric, "score")
        name = getattr(metric, "name", None)
        fits = isinstance(name, str) and bool(_METRIC_NAME.fullmatch(name))
        _require(f"{argument}.name", name, "lower case letters, digits and underscores", fits=fits)
        _require(f"{argument}.name", name, "unlike the names of the other metrics", fits=name not in names)
        names.append(str(name))


def _check_metric_rates(rates: Mapping[str, float], names: Sequence[str]) -> None:
    _require("metric_sample_rates", rates, "a mapping of shares by metric", fits=isinstance(rates, Mapping))
    for name, rate in rates.items():
        _require("a name in metric_sample_rates", name, f"one of {', '.join(names)}", fits=name in names)
        _require_number(f"metric_sample_rates[{name!r}]", rate, _SHARE, lambda share: 0 <= share <= 1)


def _check_budget(budget: object, metrics: Iterable[object]) -> None:
    _require("budget", budget, "a Budget", fits=isinstance(budget, Budget))
    if not isinstance(budget, Budget) or budget.usd_per_day is None:
        return
    for spender in (spender for metric in metrics for spender in spenders_of(metric)):
        if spender.price is None:
            raise ConfigurationError(
                f"budget limits usd_per_day, but what the judge {spender.name!r} costs is not known: give it "
                "price=Price(input, output) in dollars for a million tokens, or set RAGSPAN_JUDGE_PRICE"
            )


def _check_emitters(emitters: Sequence[object]) -> None:
    for position, emitter in enumerate(emitters):
        argument = f"emitters[{position}]"
        _require_object(argument, emitter, "start", "flush", "shutdown")
        _require_number(
            f"{argument}.score_wait", getattr(emitter, "score_wait", None), _SECONDS, lambda time: time >= 0
        )


def _check_travel(metrics: Sequence[object], emitters: Sequence[object]) -> None:
    """What goes to the helper process has to be something that can be made there once more."""
    from ragspan.telemetry.environment import exporter_is_configured

    if not exporter_is_configured():
        raise ConfigurationError(
            "export is 'helper', but no exporter is configured that another process could build: "
            "set OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_TRACES_EXPORTER"
        )
    for argument, values in (("metrics", metrics), ("emitters", emitters)):
        for position, value in enumerate(values):
            reason = _reason_not_to_travel(value)
            if reason is not None:
                raise ConfigurationError(
                    f"{argument}[{position}] cannot go to the helper process, as export='helper' asks: {reason}"
                )


def _budget_to_travel(budget: Budget, metrics: Iterable[object]) -> Budget:
    """The budget without a fallback that could not go along, if no metric has a judge that is paid for: it has no use then."""
    reason = _reason_not_to_travel(budget.fallback)
    if reason is None:
        return budget
    if any(any(spenders_of(metric)) for metric in metrics):
        raise ConfigurationError(f"budget.fallback cannot go to the helper process, as export='helper' asks: {reason}")
    return replace(budget, fallback="skip")


def _reason_not_to_travel(value: object) -> str | None:
    try:
        pickled = pickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - of any metric or emitter
        return f"{type(error).__name__}: {error}"
    if any(argument == "__main__" for _, argument, _ in pickletools.genops(pickled)):
        return f"{type(value).__name__} needs the main module, which is not run again there: move what it is defined in"
    return None


def _require_object(argument: str, value: object, *methods: str) -> None:
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    allowed = (
        f"an object with the methods {', '.join(methods)}" if len(methods) > 1 else "an object with a score method"
    )
    _require(argument, value, allowed, fits=not isinstance(value, type) and not missing)


def _require_whole(argument: str, value: object) -> None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    _require(argument, value, "a whole number, at least 1", fits=fits)


def _require_text(argument: str, value: object) -> None:
    _require(argument, value, "a text that is not empty", fits=isinstance(value, str) and bool(value))


def _require_number(argument: str, value: object, allowed: str, fits: Callable[[float], bool]) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and fits(value)
    _require(argument, value, allowed, fits=is_number)


def _require(argument: str, value: object, allowed: str, *, fits: bool) -> None:
    if not fits:
        raise ConfigurationError(f"{argument} is {_shown(value)}, but should be {allowed}")


def _shown(value: object) -> str:
    """The value for a message; objects by their type, because their own text may hold anything."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
