"""Which answers are judged: conditions such as `tag=prod and latency>2s`, and a rate for each metric.

    judge_when   = statement (";" statement)*
    statement    = [metric ":"] (rate ["of" condition] | condition)
    condition    = comparison ("and" comparison)*
    comparison   = field ("=" | "!=" | "<" | "<=" | ">" | ">=") value

A statement without a metric counts for all. A text may be one of several, `tag=prod|staging`, and `*` stands for any characters. What
an answer lacks equals nothing and is neither more nor less than anything.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeAlias

from ragspan.arguments import meant
from ragspan.exceptions import ConfigurationError

NOT_MET: Final = "judge_when"
"""The reason of an answer that does not meet the condition."""
Facts: TypeAlias = Mapping[str, Any]
"""What is known of an answer, by field. A field may have several values; `screen` is missing before the embedded judge has read it."""
_FIELDS: Final = ("tag", "session", "user", "model", "environment", "latency", "screen")
"""Besides `metadata.<key>`. The `screen` is the embedded judge's score of the answer."""
_ALL: Final = ""
"""The metric of a statement that counts for all."""
_UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "latency": {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0},
    "screen": {"": 1.0, "%": 0.01},
}
_ORDER: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SIGNS: Final[Mapping[str, Callable[[Any, Any], object]]] = {**_ORDER, "=": operator.eq, "!=": operator.ne}
_STATEMENT: Final = re.compile(r"\s*(?:([^\s=<>!:]+)\s*:)?\s*(?:(\d*\.?\d+)(%?)\s*(?:of\s|\Z))?\s*(.*)", re.DOTALL)
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)
_COMPARISON: Final = re.compile(r"([^=<>!]*)([<>]=?|!=|=|)\s*([^=<>!]*)")


class _Comparison(NamedTuple):
    name: str
    sign: str
    value: str
    number: float | None
    """The value as a number, in the field's first unit."""

    def holds(self, facts: Facts) -> bool:
        found = facts.get(self.name)
        values = found if isinstance(found, (list, tuple)) else [] if found is None else [found]
        if self.name in _UNITS or self.sign in _ORDER:
            return any(_SIGNS[self.sign](one, self.number) for one in values if isinstance(one, (int, float)))
        texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
        patterns = self.value.split("|")
        return any(fnmatchcase(text, one) for text in texts for one in patterns) is (self.sign == "=")


def facts_of(record: Any, environment: str | None = None) -> dict[str, Any]:
    """What a record says of its answer; `environment` is that of the process, where the record names none."""
    return {
        "tag": record.tags,
        "session": record.session_id,
        "user": record.user_id,
        "model": [name for one in record.generations for name in (one.model, one.response_model) if name],
        "environment": record.metadata.get("environment", environment),
        "latency": (record.ended_ns - record.started_ns) / 1e9 if record.ended_ns > record.started_ns else None,
        **{f"metadata.{key}": value for key, value in record.metadata.items()},
    }


@dataclass(frozen=True, slots=True)
class JudgeWhen:
    """Which answers are judged.

    Args:
        text: as `RAGSPAN_JUDGE_WHEN` has it.
        name: of the argument or variable, for errors.

    Raises:
        ConfigurationError: the text is wrong; the message shows the part that is.
    """

    text: str
    name: str = field(default="judge_when", compare=False)
    rates: dict[str, float] = field(init=False, compare=False, default_factory=dict)
    """The share of answers, by metric."""
    _conditions: dict[str, list[_Comparison]] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for statement in self.text.split(";"):
            metric, rate, percent, rest = re.fullmatch(_STATEMENT, statement).groups(_ALL)  # type: ignore[union-attr]
            if rate and metric == _ALL:
                raise self._error(statement, "a rate needs a metric before it; that of all is sample_rate")
            if metric in self._conditions or metric in self.rates:
                raise self._error(statement, f"{metric or 'all metrics'} have a statement already")
            if rate:
                self.rates[metric] = float(rate) / (100 if percent else 1)
                if self.rates[metric] > 1:
                    raise self._error(statement, "a rate is from 0 to 1, or a percentage")
            if rest or not rate:
                compared = [self._comparison(part) for part in _AND.split(rest.strip())]
                self._conditions[metric] = compared
                if metric != _ALL and any(one.name == "screen" for one in compared):
                    words = "the screen's score decides for all metrics at once: leave the metric out"
                    raise self._error(statement, words)

    @property
    def needs_screen(self) -> bool:
        """Whether a condition compares the screen's score."""
        return any(one.name == "screen" for one in self._conditions.get(_ALL, ()))

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that are named."""
        return frozenset({*self._conditions, *self.rates} - {_ALL})

    def chooses(self, metric: str, facts: Facts) -> bool | None:
        """Whether an answer is judged by this metric; None where the screen's score decides."""
        compared = [one for name in (_ALL, metric) for one in self._conditions.get(name, ())]
        is_known = [one.name != "screen" or "screen" in facts for one in compared]
        if not all(one.holds(facts) for one, known in zip(compared, is_known, strict=True) if known):
            return False
        return True if all(is_known) else None

    def allows(self, facts: Facts, screen: float | None) -> bool:
        """Whether an answer is judged that the embedded judge gives this score; None if it gives none."""
        known = {**facts, "screen": screen}
        return all(one.holds(known) for one in self._conditions.get(_ALL, ()))

    def _comparison(self, part: str) -> _Comparison:
        found = _COMPARISON.fullmatch(part)
        if found is None or " or " in part:
            raise self._error(
                part, "'and' or ';' is expected between two comparisons; one of several is tag=prod|staging"
            )
        name, sign, value = map(str.strip, found.groups())
        if not name:
            raise self._error(part, "a comparison is expected, such as tag=prod")
        if name not in _FIELDS and not re.fullmatch(r"metadata\..+", name):
            known = f"there are {', '.join(_FIELDS)} and metadata.<key>"
            raise self._error(part, f"there is no field {name!r}{meant(name, _FIELDS)}; {known}")
        if not sign or not value:
            sample = {"latency": ">2s", "screen": "<0.5"}.get(name, "=prod")
            raise self._error(part, f"{name} needs a sign and a value, such as {name}{sample}")
        amount = re.fullmatch(r"(-?\d*\.?\d+)([a-z%]*)", value.lower())
        units = _UNITS.get(name, {"": 1.0})
        number = float(amount[1]) * units[amount[2]] if amount and amount[2] in units else None
        if name in _UNITS and number is None:
            wanted = "a time, such as 2s or 500ms" if name == "latency" else "a score from 0 to 1, such as 0.5"
            raise self._error(part, f"{name} is compared with {wanted}")
        if sign in _ORDER and (number is None or not (name in _UNITS or name.startswith("metadata."))):
            raise self._error(part, f"{name} is compared with = and !=; only numbers are more or less")
        return _Comparison(name, sign, value, number)

    def _error(self, part: str, words: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self.name} is wrong at {part.strip()!r}: {words}; it should be like 'tag=prod and latency>2s', or "
            "'tag=prod; faithfulness: 0.1'"
        )
