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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from ragspan.arguments import meant
from ragspan.exceptions import ConfigurationError

FIELDS: Final = ("tag", "session", "user", "model", "environment", "latency", "screen")
"""Besides `metadata.<key>`. The `screen` is the embedded judge's score of the answer."""
ALL: Final = ""
"""The metric of a statement that counts for all."""
NOT_MET: Final = "judge_when"
"""The reason of an answer that does not meet the condition."""
Facts: TypeAlias = Mapping[str, Any]
"""What is known of an answer, by field. A field may have several values; `screen` is missing before the embedded judge has read it."""
_Test: TypeAlias = Callable[[Facts], "bool | None"]
"""None where it depends on the screen's score, which is not known yet."""


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
        ConfigurationError: the text is wrong; the message shows where.
    """

    text: str
    name: str = field(default="judge_when", compare=False)
    rates: Mapping[str, float] = field(init=False, compare=False, default_factory=dict)
    """The share of answers, by metric."""
    needs_screen: bool = field(init=False, compare=False, default=False)
    """Whether a condition compares the screen's score."""
    _tests: Mapping[str, _Test] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        parser = _Parser(self.text, self.name)
        tests, rates = parser.statements()
        object.__setattr__(self, "_tests", tests)
        object.__setattr__(self, "rates", rates)
        object.__setattr__(self, "needs_screen", parser.names_screen())

    def __reduce__(self) -> tuple[type[JudgeWhen], tuple[str, str]]:
        return JudgeWhen, (self.text, self.name)

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that are named."""
        return frozenset({*self._tests, *self.rates} - {ALL})

    def chooses(self, metric: str, facts: Facts) -> bool | None:
        """Whether an answer is judged by this metric; None where the screen's score decides."""
        return _all([test(facts) for name in (ALL, metric) if (test := self._tests.get(name)) is not None])

    def allows(self, facts: Facts, screen: float | None) -> bool:
        """Whether an answer is judged that the embedded judge gives this score; None if it gives none."""
        test = self._tests.get(ALL)
        return test is None or test({**facts, "screen": screen}) is True


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._tokens: list[_Token] = []
        self._next = 0
        for match in _TOKEN.finditer(text):
            kind, word = str(match.lastgroup), match[0]
            if kind == "other":
                raise self._wrong(f"{word!r} is not expected", match.start())
            if kind != "blank":
                self._tokens.append(_Token(kind, word[1:-1] if kind == "text" else word, match.start()))
        self._tokens.append(_Token("end", "", len(text)))

    def names_screen(self, begin: int = 0) -> bool:
        """Whether one of the tokens from here on to the next one compares the screen's score."""
        read = self._tokens[begin : self._next + 1]
        return any(one.text == "screen" and two.kind == "sign" for one, two in pairwise(read))

    def statements(self) -> tuple[dict[str, _Test], dict[str, float]]:
        tests: dict[str, _Test] = {}
        rates: dict[str, float] = {}
        while True:
            at, metric = self._peek.at, ALL
            if self._peek.kind == "word" and self._tokens[self._next + 1].text == ":":
                metric = self._peek.text
                self._next += 2
            rate = self._rate()
            if rate is not None and metric == ALL:
                raise self._wrong("a rate needs a metric before it; that of all is sample_rate", at)
            if metric in tests or metric in rates:
                raise self._wrong(f"{metric or 'all metrics'} have a statement already", at)
            if rate is not None:
                rates[metric] = rate
            if rate is None or self._takes("of"):
                begin = self._next
                tests[metric] = self._either()
                if metric != ALL and self.names_screen(begin):
                    raise self._wrong("the screen's score decides for all metrics at once: leave the metric out", at)
            if self._peek.kind == "end":
                return tests, rates
            if not self._takes(";"):
                raise self._wrong("'and', 'or' or ';' is expected; a value with other signs in it needs quotes")

    def _rate(self) -> float | None:
        found = re.fullmatch(r"(\d*\.?\d+)(%?)", self._peek.text) if self._peek.kind == "word" else None
        if found is None:
            return None
        rate = float(found[1]) / (100 if found[2] else 1)
        if rate > 1:
            raise self._wrong("a rate is from 0 to 1, or a percentage")
        self._next += 1
        return rate

    def _either(self) -> _Test:
        tests = [self._both()]
        while self._takes("or"):
            tests.append(self._both())
        return lambda facts: _not(_all([_not(test(facts)) for test in tests]))

    def _both(self) -> _Test:
        tests = [self._single()]
        while self._takes("and"):
            tests.append(self._single())
        return lambda facts: _all([test(facts) for test in tests])

    def _single(self) -> _Test:
        if self._takes("not"):
            test = self._single()
            return lambda facts: _not(test(facts))
        if self._takes("("):
            test = self._either()
            if not self._takes(")"):
                raise self._wrong("a closing bracket is missing")
            return test
        return self._comparison()

    def _comparison(self) -> _Test:
        name, sign, value = [*self._tokens[self._next :], *self._tokens[-1:] * 2][:3]
        if name.kind != "word":
            raise self._wrong("a comparison is expected, such as tag=prod")
        if name.text not in FIELDS and not re.fullmatch(r"metadata\..+", name.text):
            known = f"there are {', '.join(FIELDS)} and metadata.<key>"
            raise self._wrong(f"there is no field {name.text!r}{meant(name.text, FIELDS)}; {known}")
        if sign.kind != "sign":
            sample = {"latency": ">2s", "screen": "<0.5"}.get(name.text, "=prod")
            raise self._wrong(f"{name.text} needs a sign and a value, such as {name.text}{sample}", sign.at)
        if value.kind not in {"word", "text"}:
            raise self._wrong("a value is missing", value.at)
        self._next += 3
        units = _UNITS.get(name.text, {"": 1.0})
        found = re.fullmatch(r"(-?\d*\.?\d+)([a-z%]*)", value.text.lower()) if value.kind == "word" else None
        number = float(found[1]) * units[found[2]] if found and found[2] in units else None
        if name.text in _UNITS and number is None:
            wanted = "a time, such as 2s or 500ms" if name.text == "latency" else "a score from 0 to 1, such as 0.5"
            raise self._wrong(f"{name.text} is compared with {wanted}", value.at)
        if name.text not in _UNITS and sign.text in {"=", "==", "!="}:
            return _equal(name.text, value.text, is_negated=sign.text == "!=")
        if number is None or not (name.text in _UNITS or name.text.startswith("metadata.")):
            raise self._wrong(f"{name.text} is compared with = and !=; only numbers are more or less", sign.at)
        return _ordered(name.text, _COMPARE[sign.text], number)

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _takes(self, text: str) -> bool:
        is_there = self._peek.kind in {"word", "mark"} and self._peek.text.lower() == text
        self._next += is_there
        return is_there

    def _wrong(self, words: str, at: int | None = None) -> ConfigurationError:
        """The error with the text, and a mark below the place that is meant."""
        place = self._peek.at if at is None else at
        return ConfigurationError(
            f"{self._name} is wrong at character {place + 1}: {words}; it should be like 'tag=prod and latency>2s', or "
            f"'tag=prod; faithfulness: 0.1'\n    {self._text}\n    {' ' * place}^"
        )


def _not(found: bool | None) -> bool | None:  # noqa: FBT001 - a truth value of three
    return None if found is None else not found


def _all(found: Sequence[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _values(facts: Facts, name: str) -> Sequence[Any]:
    value = facts.get(name)
    return value if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _equal(name: str, pattern: str, *, is_negated: bool) -> _Test:
    def test(facts: Facts) -> bool:
        shown = [str(one).lower() if isinstance(one, bool) else str(one) for one in _values(facts, name)]
        return any(fnmatchcase(one, pattern) for one in shown) != is_negated

    return test


def _ordered(name: str, compare: Callable[[float, float], bool], number: float) -> _Test:
    def test(facts: Facts) -> bool | None:
        if name == "screen" and name not in facts:
            return None
        return any(compare(float(one), number) for one in _values(facts, name) if isinstance(one, (int, float)))

    return test


_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)|(?P<text>"[^"]*"|'[^']*')|(?P<sign><=|>=|!=|==|=|<|>)|(?P<mark>[();:])|(?P<word>[^\s"'()<>=!;:]+)"""
    r"|(?P<other>.)"
)
_UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "latency": {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0},
    "screen": {"": 1.0, "%": 0.01},
}
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
