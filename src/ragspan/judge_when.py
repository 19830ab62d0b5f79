"""Which answers are judged: conditions such as `tag=prod and latency>2s`, and a rate for each metric.

    judge_when   = statement (";" statement)*
    statement    = [metric ":"] (rate ["of" condition] | condition)
    condition    = "and", "or", "not" and brackets over comparisons
    comparison   = field ("=" | "!=" | "<" | "<=" | ">" | ">=") value

A statement without a metric counts for all. Values may have quotes, and `*` for any characters. What an answer lacks equals nothing
and is neither more nor less than anything.
"""

from __future__ import annotations

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
    models = [name for one in record.generations for name in (one.model, one.response_model) if name]
    return {
        "tag": record.tags,
        "session": record.session_id,
        "user": record.user_id,
        "model": models,
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
    _tests: Mapping[str, _Test] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        tests, rates = _Parser(self.text, self.name).statements()
        object.__setattr__(self, "_tests", tests)
        object.__setattr__(self, "rates", rates)

    def __reduce__(self) -> tuple[type[JudgeWhen], tuple[str, str]]:
        return JudgeWhen, (self.text, self.name)

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that are named."""
        return frozenset({*self._tests, *self.rates} - {ALL})

    @property
    def needs_screen(self) -> bool:
        """Whether a condition compares the screen's score."""
        return _names_screen(_tokens(self.text, self.name))

    def chooses(self, metric: str, facts: Facts) -> bool | None:
        """Whether an answer is judged by this metric; None where the screen's score decides."""
        found = [test(facts) for name in (ALL, metric) if (test := self._tests.get(name)) is not None]
        return _all(found)

    def allows(self, facts: Facts, screen: float | None) -> bool:
        """Whether an answer is judged that the embedded judge gives this score; None if it gives none."""
        test = self._tests.get(ALL)
        return test is None or test({**facts, "screen": screen}) is True


def _names_screen(tokens: Sequence[_Token]) -> bool:
    return any(one.text == "screen" and two.kind == "sign" for one, two in pairwise(tokens))


def _all(found: Sequence[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<text>"[^"]*"|'[^']*')|(?P<sign><=|>=|!=|==|=|<|>)|(?P<mark>[();:])|(?P<word>[^\s"'()<>=!;:]+)"""
)
_EXAMPLE: Final = "'tag=prod and latency>2s', or 'tag=prod; completeness: 0.1'"


def _tokens(text: str, name: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _error(name, text, place, f"{text[place]!r} is not expected")
        if match.lastgroup != "blank":
            kind, word = str(match.lastgroup), match[0]
            found.append(_Token(kind, word[1:-1] if kind == "text" else word, place))
        place = match.end()
    return found


def _error(name: str, text: str, at: int, words: str) -> ConfigurationError:
    """The error with the text, and a mark below the place that is meant."""
    return ConfigurationError(
        f"{name} is wrong at character {at + 1}: {words}; it should be like {_EXAMPLE}\n    {text}\n    {' ' * at}^"
    )


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._tokens = _tokens(text, name)
        self._next = 0

    def statements(self) -> tuple[dict[str, _Test], dict[str, float]]:
        tests: dict[str, _Test] = {}
        rates: dict[str, float] = {}
        while True:
            at = self._at
            metric = self._metric()
            rate = self._rate()
            if rate is not None and metric == ALL:
                raise self._wrong("a rate needs a metric before it; that of all is sample_rate", at)
            if metric in tests or metric in rates:
                raise self._wrong(f"{metric or 'all metrics'} have a statement already", at)
            if rate is not None:
                rates[metric] = rate
            if rate is None or self._take("word", "of"):
                begin = self._next
                tests[metric] = self._either()
                if metric != ALL and _names_screen(self._tokens[begin : self._next]):
                    raise self._wrong("the screen's score decides for all metrics at once: leave the metric out", at)
            if self._next == len(self._tokens):
                return tests, rates
            if not self._take("mark", ";"):
                raise self._wrong("'and', 'or' or ';' is expected; a value with other signs in it needs quotes")

    def _metric(self) -> str:
        following = self._tokens[self._next : self._next + 2]
        if len(following) == 2 and following[0].kind == "word" and following[1].text == ":":  # noqa: PLR2004 - a pair
            self._next += 2
            return following[0].text
        return ALL

    def _rate(self) -> float | None:
        token = self._peek
        found = re.fullmatch(r"(\d*\.?\d+)(%?)", token.text) if token is not None and token.kind == "word" else None
        if token is None or found is None:
            return None
        self._next += 1
        rate = float(found[1]) / (100 if found[2] else 1)
        if rate > 1:
            raise self._wrong("a rate is from 0 to 1, or a percentage", token.at)
        return rate

    def _either(self) -> _Test:
        tests = [self._both()]
        while self._take("word", "or"):
            tests.append(self._both())
        return lambda facts: _any([test(facts) for test in tests])

    def _both(self) -> _Test:
        tests = [self._single()]
        while self._take("word", "and"):
            tests.append(self._single())
        return lambda facts: _all([test(facts) for test in tests])

    def _single(self) -> _Test:
        if self._take("word", "not"):
            test = self._single()
            return lambda facts: None if (found := test(facts)) is None else not found
        if self._take("mark", "("):
            test = self._either()
            if not self._take("mark", ")"):
                raise self._wrong("a closing bracket is missing")
            return test
        return self._comparison()

    def _comparison(self) -> _Test:
        name = self._peek
        if name is None or name.kind != "word":
            raise self._wrong("a comparison is expected, such as tag=prod")
        if name.text not in FIELDS and not re.fullmatch(r"metadata\..+", name.text):
            known = f"there are {', '.join(FIELDS)} and metadata.<key>"
            raise self._wrong(f"there is no field {name.text!r}{meant(name.text, FIELDS)}; {known}")
        self._next += 1
        sign = self._peek
        if sign is None or sign.kind != "sign":
            raise self._wrong(
                f"{name.text} needs a sign and a value, such as {name.text}{_SAMPLES.get(name.text, '=prod')}"
            )
        self._next += 1
        value = self._peek
        if value is None or value.kind not in {"word", "text"}:
            raise self._wrong("a value is missing")
        self._next += 1
        return self._test(name, sign, value)

    def _test(self, name: _Token, sign: _Token, value: _Token) -> _Test:
        if name.text in {"latency", "screen"}:
            number = _number(value.text, _UNITS if name.text == "latency" else {"": 1.0, "%": 0.01})
            if number is None or value.kind == "text":
                wanted = "a time, such as 2s or 500ms" if name.text == "latency" else "a score from 0 to 1, such as 0.5"
                raise self._wrong(f"{name.text} is compared with {wanted}", value.at)
            return _ordered(name.text, sign.text, number)
        if sign.text in {"=", "==", "!="}:
            return _equal(name.text, value.text, is_negated=sign.text == "!=")
        number = _number(value.text, {"": 1.0})
        if not name.text.startswith("metadata.") or number is None:
            raise self._wrong(f"{name.text} is compared with = and !=; only numbers are more or less", sign.at)
        return _ordered(name.text, sign.text, number)

    @property
    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    @property
    def _at(self) -> int:
        return len(self._text) if self._peek is None else self._peek.at

    def _take(self, kind: str, text: str) -> bool:
        token = self._peek
        is_there = token is not None and token.kind == kind and token.text.lower() == text
        self._next += is_there
        return is_there

    def _wrong(self, words: str, at: int | None = None) -> ConfigurationError:
        return _error(self._name, self._text, self._at if at is None else at, words)


_SAMPLES: Final = {"latency": ">2s", "screen": "<0.5"}
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}


def _any(found: Sequence[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _number(text: str, units: Mapping[str, float]) -> float | None:
    found = re.fullmatch(r"(-?\d*\.?\d+)([a-z%]*)", text.lower())
    return float(found[1]) * units[found[2]] if found and found[2] in units else None


def _values(facts: Facts, name: str) -> Sequence[Any]:
    value = facts.get(name)
    return value if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _equal(name: str, pattern: str, *, is_negated: bool) -> _Test:
    return lambda facts: any(fnmatchcase(_shown(one), pattern) for one in _values(facts, name)) != is_negated


def _shown(value: Any) -> str:
    """As people write it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(name: str, sign: str, number: float) -> _Test:
    compare = _COMPARE[sign]

    def test(facts: Facts) -> bool | None:
        if name == "screen" and name not in facts:
            return None
        numbers = [float(one) for one in _values(facts, name) if isinstance(one, (int, float))]
        return any(compare(one, number) for one in numbers)

    return test


_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
