"""The one place where stemmers are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_CUT = 5
"""Letters of a word that count where there is no stemmer: what follows is inflection more often than not."""


def stemmer_of(name: str | None) -> Callable[[str], str]:
    """A function from a lower-case word to its stem, safe from any thread.

    Args:
        name: Snowball's name of an algorithm, such as "german"; None cuts words to their first letters.
    """
    return _cut if name is None else _snowball(name)


MOST_STEMS = 1_500
"""Different words of one record whose stems are found, which takes up to 60 µs each without a C stemmer."""


def few_stems(stem: Callable[[str], str]) -> Callable[[str], str]:
    """The same for the first `MOST_STEMS` different words that it is asked for; all others stay as they are."""
    known: dict[str, str] = {}

    def stem_of(word: str) -> str:
        found = known.get(word)
        if found is None:
            found = known[word] = stem(word) if len(known) < MOST_STEMS else word
        return found

    return stem_of


def _cut(word: str) -> str:
    return word[:_CUT]


def _snowball(name: str) -> Callable[[str], str]:
    @lru_cache(maxsize=1 << 15)
    def stem(word: str) -> str:
        # A stemmer holds the word it works on; a fresh one a word costs little and needs no lock.
        found: str = _algorithm(name)().stemWord(word)
        return found or word

    return stem


@cache
def _algorithm(name: str) -> Callable[[], Any]:
    if _is_same_snowball():
        c_stemmer = import_module("Stemmer")
        if name in c_stemmer.algorithms():
            return partial(c_stemmer.Stemmer, name)
    # Not `snowballstemmer.stemmer`, which takes the C stemmers of another version of Snowball where they are installed.
    algorithm: Callable[[], Any] = getattr(import_module(f"snowballstemmer.{name}_stemmer"), f"{name.title()}Stemmer")
    return algorithm


def _is_same_snowball() -> bool:
    """Whether PyStemmer is there and has the algorithms that snowballstemmer has, in C and twenty times as fast.

    Both are made from the same sources, and their versions are those of the sources. Stems differ between versions.
    """
    try:
        ours, theirs = version("snowballstemmer").split("."), version("PyStemmer").split(".")
    except PackageNotFoundError:
        return False
    return ours[:2] == theirs[:2]
