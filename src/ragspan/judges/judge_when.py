"""Which answers are judged: conditions such as `tag=prod and latency>2s`, and a rate for each metric.

    judge_when   = statement (";" statement)*
    statement    = [metric ":"] (rate ["of" condition] | condition)
    condition    = "and", "or", "not" and brackets over comparisons
    comparison   = field ("=" | "!=" | "<" | "<=" | ">" | ">=") value

A statement without a metric counts for all. Values may have quotes, and `*` for any characters. What an answer lacks equals nothing
and is neither more nor less than anything.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from ragspan.arguments import meant
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord

NOT_MET: Final = "judge_when"
"""The reason of an answer that does not meet the condition."""
Facts: TypeAlias = Mapping[str, Any]
"""What is known of an answer, by field. A field may have several values."""
_Node: TypeAlias = tuple[Any, ...]
"""A condition: `("not", node)`, `("and", nodes)`, `("or", nodes)`, or field, sign, value and the value as a number."""
_FIELDS: Final = ("tag", "session", "user", "model", "environment", "latency")
"""Besides `metadata.<key>`."""
_ALL: Final = ""
"""The metric of a statement that counts for all."""
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}
_EQUAL: Final = {"=": operator.eq, "==": operator.eq, "!=": operator.ne}
_SIGNS: Final = {**_EQUAL, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_TOKEN: Final = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*')|(?P<sign><=|>=|!=|==|=|<|>)|(?P<mark>[();:])|(?P<word>[^\s"'()<>=!;:]+)|(?P<other>\S)|(?P<end>\Z)"""
)


def facts_of(record: RagRecord) -> dict[str, Any]:
    """What a record says of its answer; where it names no environment, that of OpenTelemetry's variable counts."""
    parts = [part.partition("=") for part in (variable("OTEL_RESOURCE_ATTRIBUTES") or "").split(",")]
    process = {name.strip(): value.strip() for name, _, value in parts}
    environment = process.get("deployment.environment.name") or process.get("deployment.environment")
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
        ConfigurationError: the text is wrong; the message shows where.
    """

    text: str
    name: str = field(default="judge_when", compare=False)
    rates: dict[str, float] = field(init=False, compare=False, default_factory=dict)
    """The share of answers, by metric."""
    _conditions: dict[str, _Node] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        reading = _Reading(self.text, self.name)
        while True:
            begin = reading.at
            metric = reading.token[0] if reading.kind == "word" and reading.tokens[begin + 1][0] == ":" else _ALL
            reading.at += 2 * (metric != _ALL)
            rate = re.fullmatch(r"(\d*\.?\d+)(%?)", reading.token[0])
            if rate is not None and metric == _ALL:
                raise reading.error("a rate needs a metric before it; that of all is sample_rate", begin)
            if metric in self._conditions or metric in self.rates:
                raise reading.error(f"{metric or 'all metrics'} have a statement already", begin)
            if rate is not None:
                self.rates[metric] = float(rate[1]) / (100 if rate[2] else 1)
                if self.rates[metric] > 1:
                    raise reading.error("a rate is from 0 to 1, or a percentage")
                reading.at += 1
            if rate is None or reading.takes("of"):
                self._conditions[metric] = reading.any_of()
            if reading.kind == "end":
                return
            if not reading.takes(";"):
                raise reading.error("'and', 'or' or ';' is expected; a value with other signs in it needs quotes")

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that are named."""
        return frozenset({*self._conditions, *self.rates} - {_ALL})

    def chooses(self, metric: str, facts: Facts) -> bool:
        """Whether an answer is judged by this metric."""
        return all(_holds(self._conditions[name], facts) for name in (_ALL, metric) if name in self._conditions)


def _holds(node: _Node, facts: Facts) -> bool:
    """Whether a condition holds."""
    if node[0] == "not":
        return not _holds(node[1], facts)
    if node[0] in {"and", "or"}:
        holding = (_holds(one, facts) for one in node[1])
        return all(holding) if node[0] == "and" else any(holding)
    name, sign, wanted, number = node
    value = facts.get(name)
    values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    if name != "latency" and sign in _EQUAL:
        texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
        return any(fnmatchcase(text, wanted) for text in texts) is (sign != "!=")
    return any(_SIGNS[sign](one, number) for one in values if isinstance(one, (int, float)))


class _Reading:
    """A text that is read from its beginning, token by token."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        found = [*_TOKEN.finditer(text)]
        self.tokens = [*found, *found[-1:] * 3]  # the last is the end
        self.at = 0

    @property
    def token(self) -> re.Match[str]:
        return self.tokens[self.at]

    @property
    def kind(self) -> str | None:
        return self.token.lastgroup

    def takes(self, text: str) -> bool:
        is_there = self.kind in {"word", "mark"} and self.token[0].lower() == text
        self.at += is_there
        return is_there

    def any_of(self, word: str = "or") -> _Node:
        parts: list[_Node] = []
        while not parts or self.takes(word):
            parts.append(self.any_of("and") if word == "or" else self._single())
        return word, parts

    def _single(self) -> _Node:
        if self.takes("not"):
            return "not", self._single()
        if self.takes("("):
            node = self.any_of()
            if not self.takes(")"):
                raise self.error("a closing bracket is missing")
            return node
        name, at = self.token[0], self.at
        sign, value = self.tokens[at + 1 : at + 3]
        if self.kind != "word":
            raise self.error("a comparison is expected, such as tag=prod")
        if name not in _FIELDS and not re.fullmatch(r"metadata\..+", name):
            known = f"there are {', '.join(_FIELDS)} and metadata.<key>"
            raise self.error(f"there is no field {name!r}{meant(name, _FIELDS)}; {known}")
        if sign.lastgroup != "sign":
            sample = ">2s" if name == "latency" else "=prod"
            raise self.error(f"{name} needs a sign and a value, such as {name}{sample}", at + 1)
        if value.lastgroup not in {"word", "text"}:
            raise self.error("a value is missing", at + 2)
        found = re.fullmatch(r"(-?\d*\.?\d+)([a-z]*)", value[0].lower())
        units = _SECONDS if name == "latency" else {"": 1.0}
        number = float(found[1]) * units[found[2]] if found and found[2] in units else None
        if name == "latency" and number is None:
            raise self.error("latency is compared with a time, such as 2s or 500ms", at + 2)
        if sign[0] not in _EQUAL and (number is None or not (name == "latency" or name.startswith("metadata."))):
            raise self.error(f"{name} is compared with = and !=; only numbers are more or less", at + 1)
        self.at += 3
        return name, sign[0], value[0][1:-1] if value.lastgroup == "text" else value[0], number

    def error(self, words: str, at: int | None = None) -> ConfigurationError:
        """The error with the text, and a mark below the place that is meant."""
        place = self.tokens[self.at if at is None else at].start()
        return ConfigurationError(
            f"{self._name} is wrong at character {place + 1}: {words}; it should be like 'tag=prod and latency>2s', or "
            f"'tag=prod; faithfulness: 0.1'\n    {self._text}\n    {' ' * place}^"
        )
