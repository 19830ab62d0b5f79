"""Rules for arguments and settings, and the only place with the words of their errors: `WHOLE.check("polls", polls)`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.exceptions import ConfigurationError


@dataclass(frozen=True)
class Rule:
    """An allowed kind of value, in words and as a test."""

    allowed: str
    fits: Callable[[Any], object]
    values: Sequence[str] = ()
    """All that fit, where these are words."""

    def check(self, name: str, value: object) -> None:
        """Unless the value fits, raise a `ConfigurationError` with the argument, its value and what is allowed."""
        if not self.fits(value):
            raise wrong(name, value, self.allowed, self.values)

    def check_fields(self, owner: object, *names: str) -> None:
        for name in names:
            self.check(name, getattr(owner, name))

    def or_none(self) -> Rule:
        return Rule(self.allowed, lambda value: value is None or self.fits(value), self.values)


def wrong(name: str, value: object, allowed: str, known: Sequence[str] = ()) -> ConfigurationError:
    """The error for a value; of an object it shows the type, because its own text may contain anything."""
    guess = meant(value, known) if isinstance(value, str) else ""
    if isinstance(value, type):
        shown = f"the class {value.__name__}"
    elif value is None or isinstance(value, (str, int, float)):
        shown = repr(value)
    else:
        kind = type(value).__name__
        shown = f"an empty {kind}" if isinstance(value, Collection) and not value else with_article(kind)
    return ConfigurationError(f"{name} is {shown}, but should be {allowed}{guess}")


def with_article(name: str) -> str:
    """The name of a class, as a sentence has it: `a Faithfulness`, `an LLMJudge`."""
    return f"{'an' if name[:1] in {*'AEIOaeio'} or name[:3] == 'LLM' else 'a'} {name}"


def meant(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """What the word may be a misspelling of, for the end of a message; an empty text where nothing is like it.

    A prefix that all known words have in common is not compared, because with it all would be similar.
    """
    by_lower_case = {each.removeprefix(prefix).lower(): each for each in known}
    close = difflib.get_close_matches(word.removeprefix(prefix).lower(), by_lower_case, n=1)
    return f"; did you mean {by_lower_case[close[0]]!r}?" if close else ""


def counted(number: int, one: str, *, grouped: bool = False) -> str:
    """`1 trace`, `1200 traces`, or grouped `1,200 traces`."""
    return f"{f'{number:,}' if grouped else number} {one}{'' if number == 1 else 's'}"


def whole(least: int = 1, most: float = math.inf) -> Rule:
    """A whole number, but not `True`."""
    allowed = f"a whole number, at least {least}" if most == math.inf else f"a whole number from {least} to {most}"
    return Rule(allowed, lambda value: isinstance(value, int) and type(value) is not bool and least <= value <= most)


def number(allowed: str, fits: Callable[[float], bool]) -> Rule:
    """A finite number, but not `True`."""

    def is_such(value: Any) -> bool:
        return isinstance(value, (int, float)) and type(value) is not bool and math.isfinite(value) and fits(value)

    return Rule(allowed, is_such)


def between(least: int, most: int) -> Rule:
    return number(f"a number from {least} to {most}", lambda value: least <= value <= most)


def one_of(*values: str) -> Rule:
    return Rule(f"one of {', '.join(values)}", lambda value: value in values, values)


def instance(kind: type, allowed: str) -> Rule:
    return Rule(allowed, lambda value: isinstance(value, kind))


def has_methods(allowed: str, *methods: str) -> Rule:
    """An object with these methods, not a class."""
    return Rule(
        allowed, lambda value: not isinstance(value, type) and all(callable(getattr(value, m, None)) for m in methods)
    )


WHOLE = whole()
SHARE = between(0, 1)
SOME_SHARE = number("a share above 0, up to 1, such as 0.2", lambda value: 0 < value <= 1)
AMOUNT = number("a number above 0", lambda value: value > 0)
SECONDS = number("a number of seconds, 0 or more", lambda value: value >= 0)
SOME_SECONDS = number("a number of seconds, more than 0", lambda value: value > 0)
FLAG = instance(bool, "True or False")
TEXT = Rule("a text that is not empty", lambda value: isinstance(value, str) and bool(value.strip()))
