"""The arguments of an engine, checked where it is made: a wrong one must not show itself with the first answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from ragspan.config import DropPolicy
from ragspan.exceptions import ConfigurationError
from ragspan.metrics.base import Metric
from ragspan.telemetry.base import Emitter

_METRIC_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What `ScoringEngine` was given.

    Raises:
        ConfigurationError: an argument is wrong; the message names it, its value and what is allowed.
    """

    metrics: tuple[Metric, ...]
    emitters: tuple[Emitter, ...]
    queue_size: int
    queue_bytes: int
    drop: DropPolicy
    concurrency: int
    sample_rate: float
    score_unsampled: bool
    metric_timeout: float
    exit_timeout: float
    name: str

    def __post_init__(self) -> None:
        _check_metrics(self.metrics)
        _check_emitters(self.emitters)
        for name in ("queue_size", "queue_bytes", "concurrency"):
            value = getattr(self, name)
            _require(name, value, "a whole number, at least 1", fits=_is_whole(value) and value >= 1)
        _require("drop", self.drop, "'oldest' or 'newest'", fits=self.drop in {"oldest", "newest"})
        rate, timeout, at_exit = self.sample_rate, self.metric_timeout, self.exit_timeout
        _require("sample_rate", rate, "a number from 0 to 1", fits=_is_real(rate) and 0 <= rate <= 1)
        a_time, no_time = "a number of seconds, more than 0", "a number of seconds, 0 or more"
        _require("metric_timeout", timeout, a_time, fits=_is_real(timeout) and 0 < timeout < math.inf)
        _require("exit_timeout", at_exit, no_time, fits=_is_real(at_exit) and 0 <= at_exit < math.inf)
        _require("name", self.name, "a text", fits=isinstance(self.name, str) and bool(self.name.strip()))

    @property
    def score_wait(self) -> float:
        """The longest, in seconds, that any of the emitters waits."""
        return max((emitter.score_wait for emitter in self.emitters), default=0.0)


def as_tuple(argument: str, values: Sequence[object]) -> tuple[object, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise ConfigurationError(f"{argument} is {_shown(values)}, but should be a list")
    return tuple(values)


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


def _check_emitters(emitters: Sequence[object]) -> None:
    for position, emitter in enumerate(emitters):
        argument = f"emitters[{position}]"
        _require_object(argument, emitter, "open", "emit", "flush", "shutdown")
        wait = getattr(emitter, "score_wait", None)
        fits = isinstance(wait, Real) and not isinstance(wait, bool) and wait >= 0
        _require(f"{argument}.score_wait", wait, "a number of seconds, 0 or more", fits=fits)


def _require_object(argument: str, value: object, *methods: str) -> None:
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    allowed = (
        f"an object with the methods {', '.join(methods)}" if len(methods) > 1 else "an object with a score method"
    )
    _require(argument, value, allowed, fits=not isinstance(value, type) and not missing)


def _require(argument: str, value: object, allowed: str, *, fits: bool) -> None:
    if not fits:
        raise ConfigurationError(f"{argument} is {_shown(value)}, but should be {allowed}")


def _shown(value: object) -> str:
    """The value for a message; objects by their type, because their own text may hold anything."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
