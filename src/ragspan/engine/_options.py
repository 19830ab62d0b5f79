"""The arguments of an engine, checked where it is made: a wrong one must not show itself with the first answer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragspan.config import DropPolicy
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from ragspan.metrics.base import Metric
    from ragspan.telemetry.base import Emitter

_SECONDS = "a number of seconds, 0 or more"
_SOME_SECONDS = "a number of seconds, more than 0"
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
    score_unsampled: bool
    metric_timeout: float
    exit_timeout: float
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
        _require_number("sample_rate", self.sample_rate, "a number from 0 to 1", lambda rate: 0 <= rate <= 1)
        _require_number("metric_timeout", self.metric_timeout, _SOME_SECONDS, lambda time: 0 < time < math.inf)
        _require_number("exit_timeout", self.exit_timeout, _SECONDS, lambda time: 0 <= time < math.inf)
        _require_text("name", self.name)

    @property
    def score_wait(self) -> float:
        """The longest, in seconds, that any of the emitters waits."""
        return max((emitter.score_wait for emitter in self.emitters), default=0.0)


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
        _require_number(
            f"{argument}.score_wait", getattr(emitter, "score_wait", None), _SECONDS, lambda time: time >= 0
        )


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
