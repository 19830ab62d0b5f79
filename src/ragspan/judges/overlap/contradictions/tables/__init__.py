"""What the comparison knows of a language. Word tables are behind this one value; only English has one so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ragspan.judges.overlap.contradictions.tables.antonyms import ANTONYMS
from ragspan.judges.overlap.contradictions.tables.exclusive import EXCLUSIVE
from ragspan.judges.overlap.irregular import IRREGULAR_VERBS
from ragspan.judges.overlap.text import key


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """The words of one language that the comparison has to understand. All are keys, as `text.key` makes them."""

    opposites: Mapping[str, frozenset[str]]
    """For a key, those that say the opposite, or exclude it."""
    negations: frozenset[str]
    """Words that turn the clause in which they stand."""
    ending: frozenset[str]
    """Verbs that turn a clause where the other side does without them: "support was dropped"."""
    exceptions: frozenset[str]
    """Words that begin what is excepted: "every day except Monday"."""
    denying: frozenset[str]
    """Words of denial, exception and duty, which are compared by what they do and are no content."""
    harmless: frozenset[tuple[str, str]]
    """A negation with the word after it, where it denies nothing: "not only"."""
    auxiliaries: frozenset[str]
    turns: frozenset[str]
    """Words that begin a clause: "but", "if"."""
    joins: frozenset[str]
    """Words that begin a part: "and"."""
    prefixes: tuple[str, ...]
    """Beginnings of words that deny: "un"."""
    general: frozenset[str]
    """Words that a negation may stand before while it denies another: "not possible"."""
    bounds: frozenset[str]
    """Verbs for the ends of a span of time."""
    changing: frozenset[str]
    """Verbs for a change from one thing to another."""
    needed: frozenset[str]
    """Words for what has to be; denied, they leave free."""
    units: Mapping[str, tuple[str, float]]
    """For the key of a unit, what it measures and how many of the base unit it is."""
    scales: Mapping[str, float]
    """Words that multiply the number before them."""
    months: frozenset[str]
    weekdays: frozenset[str]
    light: Mapping[str, str]
    """Verbs too common to be content, which still have a subject and an object; each form with the verb."""
    past: frozenset[str]
    """Past forms of irregular verbs, as they are written."""
    phrases: Mapping[tuple[str, str], str]
    """Two words with the key of the one that they mean."""
    wide: frozenset[str]
    """Nouns that stand for many others."""


def _keys(text: str) -> frozenset[str]:
    return frozenset(map(key, text.split()))


@cache
def english() -> Tables:
    return Tables(
        opposites=_opposites(),
        negations=_keys(
            "no not never none neither nobody nothing nowhere hardly lack lacks unable non avoid avoids avoiding"
        )
        | {"not"},
        denying=_keys(
            "hardly lack lacks unable non avoid except excepting failed ceased "
            "required necessary mandatory obligatory compulsory optional voluntary need needs"
        )
        - {"not"},
        ending=_keys("discontinued abolished prohibited acquitted waived cancelled"),
        exceptions=_keys("except excepting rather without"),
        harmless=frozenset((key(a), key(b)) for a, b in (pair.split() for pair in _HARMLESS)),
        auxiliaries=_keys(
            "is are was were be been being has have had do does did can could will would shall should may might must need never"
        )
        | {"not"},
        turns=_keys(
            "but however although though while whereas yet if unless when because which who whose where so whether despite"
        ),
        joins=_keys("and or"),
        prefixes=("un", "non", "dis", "in", "im", "ir", "il", "mis"),
        general=_keys("possible available allowed able permitted case any"),
        bounds=_keys("open close start end arrive depart enter"),
        changing=_keys(
            "move relocate transfer translate raise cut change rename convert switch shift migrate upgrade fall rise drop go "
            "grow shrink increase decrease improve climb slip double"
        ),
        needed=_keys("required necessary mandatory obligatory compulsory need requirement"),
        units={key(word): (dimension, size) for dimension, size, words in _UNITS for word in words.split()},
        scales={key("thousand"): 1e3, key("million"): 1e6, key("billion"): 1e9, key("trillion"): 1e12, "100": 100},
        months=_keys("january february march april june july august september october november december"),
        weekdays=_keys("monday tuesday wednesday thursday friday saturday sunday"),
        light={form: line.split()[0] for line in _LIGHT for form in line.split()},
        past=frozenset(form for line in IRREGULAR_VERBS.strip().splitlines() for form in line.split()[1:])
        | frozenset(_UNCHANGED.split()),
        phrases={
            (key(first), second): key(word)
            for first, second, word in (line.split() for line in _PHRASES.strip().splitlines())
        },
        wide=_keys(
            "company organization organisation person people man woman group thing place country city state team user party "
            "member time other author government official system product service item one part number amount type kind way study"
        ),
    )


_LIGHT = ("go goes going", "give gives", "make makes made", "use uses used using", "take takes", "get gets got")

_UNCHANGED = "beat put set cut hit read split saw found left bound let cost hurt shut spread quit lit shot"
"""Past forms that are also others."""

_PHRASES = """
turn on enable
turn off disable
switch on enable
switch off disable
shut down close
turn down reject
give up surrender
go up rise
go down fall
set up establish
carry out perform
put off postpone
call off cancel
take off depart
find out discover
take part participate
point out indicate
throw away discard
look onto face
break out begin
break down fail
hand over deliver
pick up collect
fill in complete
fill out complete
log in login
sign in login
log out logout
speed up accelerate
slow down decelerate
"""

_HARMLESS = (
    "not only",
    "not just",
    "not merely",
    "no more",
    "not more",
    "no less",
    "not less",
    "no fewer",
    "no later",
    "not later",
    "no earlier",
    "no doubt",
    "no matter",
    "no one's",
    "nothing but",
    "not necessarily",
    "not until",
)

_UNITS: tuple[tuple[str, float, str], ...] = (
    ("%", 1, "%"),
    ("seconds", 1, "second sec s"),
    ("seconds", 60, "minute"),
    ("seconds", 3600, "hour hr"),
    ("days", 1, "day"),
    ("days", 7, "week"),
    ("months", 1, "month"),
    ("months", 3, "quarter"),
    ("months", 12, "year"),
    ("months", 120, "decade"),
    ("grams", 1e-6, "mcg microgram micrograms"),
    ("grams", 0.001, "mg milligram milligrams"),
    ("grams", 1, "gram"),
    ("grams", 1000, "kilogram"),
    ("grams", 1e6, "ton tonne tons"),
    ("pounds", 16, "lb lbs"),
    ("pounds", 1, "oz ounce"),
    ("metres", 0.001, "mm millimetre millimeter"),
    ("metres", 0.01, "cm centimetre centimeter"),
    ("metres", 1, "metre m"),
    ("metres", 1000, "kilometre"),
    ("feet", 1, "ft foot feet"),
    ("feet", 5280, "mile mi"),
    ("feet", 1 / 12, "inch inches"),
    ("litres", 0.001, "ml millilitre milliliter"),
    ("litres", 1, "litre l"),
    ("gallons", 1, "gallon"),
    ("bytes", 1e-3, "kb kilobyte"),
    ("bytes", 1, "mb megabyte"),
    ("bytes", 1e3, "gb gigabyte"),
    ("bytes", 1e6, "tb terabyte"),
    ("°C", 1, "celsius c"),
    ("°F", 1, "fahrenheit f"),
    ("kelvin", 1, "kelvin"),
    ("watts", 1, "watt w"),
    ("watts", 1e3, "kw kilowatt"),
    ("watts", 1e6, "mw megawatt"),
    ("volts", 1, "volt v"),
    ("hertz", 1, "hz hertz"),
    ("hertz", 1e6, "mhz"),
    ("hertz", 1e9, "ghz"),
    ("km/h", 1, "kmh kph"),
    ("mph", 1, "mph"),
    ("dollars", 1, "$ dollar usd"),
    ("euros", 1, "€ euro eur"),
    ("pounds sterling", 1, "£ pound gbp"),
    ("yen", 1, "yen ¥"),
    ("francs", 1, "franc chf"),
    ("cents", 1, "cent"),
)


@cache
def _opposites() -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)

    def oppose(some: Iterable[str], others: Iterable[str]) -> None:
        for one in some:
            found[one].update(other for other in others if other != one)

    for line in ANTONYMS.strip().splitlines():
        left, right = (tuple(_keys(side)) for side in line.split(" : "))
        oppose(left, right)
        oppose(right, left)
    for line in EXCLUSIVE.strip().splitlines():
        oppose(_keys(line), _keys(line))
    oppose(["include"], _keys("exclude"))
    oppose(_keys("exclude"), ["include"])
    return {word: frozenset(others) for word, others in found.items()}
