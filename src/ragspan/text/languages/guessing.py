"""Guesses the language of a text by its script and its function words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from ragspan.text.languages.language import CODES, ENGLISH, UNKNOWN, Language, language
from ragspan.text.languages.writing import MARKS, letters_by_script, main_script
from ragspan.text.vocabulary import FUNCTION_WORDS

_SAMPLE, _HEAD = 1_500, 600
"""Characters of a response or a question that are looked at, and of a context."""
_MOST_CONTEXTS = 8
_MOST_READ = 20_000
"""Characters of contexts that are looked at before their language counts as another than the response's."""
_SHARE = 0.1
"""The least share of a text's words that are function words of its language, and of its letters that are of another script."""
_ENOUGH, _FEW = 4, 3
"""Function words that a text in Latin letters needs, and that the short texts of a record need together."""

_NO_PROSE = re.compile(
    r"```.{0,1500}?(?:```|$)|`[^`\n]{1,200}`|https?://\S{1,300}|\S{1,80}@\S{1,80}|<[^>\n]{1,200}>", re.DOTALL
)
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|'(?=[^\W\d_])){{0,30}}")
_NO_LETTERS = str.maketrans({sign: " " for sign in map(chr, range(128)) if not sign.isalpha()})
_OF_SCRIPT: Final = {
    "cyrillic": ("ru", "uk", "bg", "sr"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "ne"),
    **{script: (code,) for script, code in (("greek", "el"), ("armenian", "hy"), ("hebrew", "he"), ("bengali", "bn"))},
    **{script: (code,) for script, code in (("tamil", "ta"), ("thai", "th"), ("hangul", "ko"))},
    **{script: (code,) for script, code in (("kana", "ja"), ("han", "zh"))},
}
_LATIN: Final = tuple(sorted(CODES - {"en"} - {code for codes in _OF_SCRIPT.values() for code in codes}))
_ALIKE = {"han": ("han", "kana"), "kana": ("han", "kana")}
"""Scripts in which the same names are written."""


def guess(text: str, *, enough: float = _ENOUGH) -> Language | None:
    """The language of a text; None if the text does not show it, `und` if its script is known and its language is not.

    Only the beginning is read, without code, addresses and tags. A language in Latin letters needs `enough` function words.
    """
    found, signs = _guessed(text[:_SAMPLE])
    return found if signs >= enough else None


@lru_cache(maxsize=1024)
def _guessed(sample: str) -> tuple[Language | None, float]:
    """The likeliest language of a sample, and how many of its words show it."""
    sample = _prose(sample)
    script = main_script(letters_by_script(sample))
    if script is None:
        return None, 0
    if script != "latin":
        return _of_script(script, sample), math.inf
    words = _words(sample)
    counts = _latin_counts(words)
    found = _best(counts, words)
    return (language(found), counts[found]) if found else (None, 0)


@dataclass(frozen=True, slots=True)
class Languages:
    """Those that a record is read in."""

    response: Language
    contexts: Language
    are_comparable: bool = True
    """Whether words of the response can be looked for in the contexts."""

    @property
    def apart(self) -> str:
        """For messages: which two languages they are."""
        return f"the response is in {self.response.name} and the contexts are in {self.contexts.name}"

    def with_few_stems(self) -> Languages:
        """The same for one record of many words."""
        response = self.response.with_few_stems()
        contexts = response if self.contexts is self.response else self.contexts.with_few_stems()
        return Languages(response, contexts, self.are_comparable)


def languages_of(response: str, contexts: Sequence[str], question: str = "") -> Languages:
    """The languages that a record is read in: one, unless the response is clearly in another than all of the contexts.

    All texts together decide. If they do not show it, the question does; else a response in ASCII is read as English.
    """
    heads = [text[:_HEAD] for text in contexts[:_MOST_CONTEXTS]]
    said = guess(response)
    if said is not None and any(guess(head) is said for head in heads):
        return Languages(said, said)
    read = list(filter(None, map(guess, heads)))
    if are_apart(response, contexts):
        first = read[0] if read else UNKNOWN
        return Languages(said or UNKNOWN, first, are_comparable=False)
    found = read[0] if read and said is None else said if not read else guess(f"{response[:_HEAD]}\n{' '.join(heads)}")
    if found is None and (found := guess(question)) is None:
        words = dict.fromkeys(word for text in [response, question, *heads] for word in text[:_HEAD].split())
        found = guess(" ".join(words), enough=_FEW) or (ENGLISH if response.isascii() else UNKNOWN)
    return Languages(found, found)


def are_apart(response: str, contexts: Sequence[str]) -> bool:
    """True if the response is clearly in another language than all of the contexts.

    Names alone do not show a language: a response is not apart if the contexts have half of its words.
    """
    sample = _prose(response[:_SAMPLE])
    script = main_script(letters_by_script(sample))
    shares = _MOST_READ // (len(contexts) or 1)
    read = [text[:shares] for text in contexts if any(map(str.isalpha, text[:shares]))]
    if script is None or not read or not all(_differs(sample, script, _prose(text)) for text in read):
        return False
    words = set(_words(sample))
    there = "\n".join(read).lower()
    return 2 * sum(word in there for word in words) < len(words)


def _differs(response: str, script: str, context: str) -> bool:
    there = letters_by_script(context)
    own = sum(there.get(name, 0) for name in _ALIKE.get(script, (script,)))
    if own < _SHARE * sum(there.values()):
        return True
    if script != "latin":
        return False
    own_words, words = _words(response), _words(context)
    said, read = _latin_counts(own_words), _latin_counts(words)
    first, second = _best(said, own_words), _best(read, words)
    if first is None or second is None or min(said[first], read[second]) < _ENOUGH:
        return False
    return said[first] > 2 * said[second] and read[second] > 2 * read[first]


def _best(counts: Mapping[str, float], words: Sequence[str]) -> str | None:
    """The language with most function words, if they are enough of the words."""
    best = max(counts, key=counts.__getitem__, default="en")
    return best if counts.get(best, 0) >= max(1, _SHARE * len(words)) else None


def _prose(text: str) -> str:
    return _NO_PROSE.sub(" ", text) if any(map(text.__contains__, "`@<")) or "://" in text else text


def _of_script(script: str, sample: str) -> Language:
    codes = _OF_SCRIPT.get(script, ("und",))
    if len(codes) == 1:
        return language(codes[0])
    counts = _counts(_words(sample), codes)
    return language(max(codes, key=lambda code: counts[code]))  # the first of equals


def _latin_counts(words: Sequence[str]) -> Mapping[str, float]:
    """For each language in Latin letters the number of its function words; for English alone where it is clear."""
    english = sum(map(FUNCTION_WORDS.__contains__, words))
    if english >= _ENOUGH and 3 * english >= len(words):
        return Counter(en=english)
    counts = _counts(words, _LATIN)
    counts["en"] = english
    return counts


def _words(sample: str) -> list[str]:
    lowered = sample.lower().replace("\u2019", "'")
    if lowered.isascii():
        return lowered.translate(_NO_LETTERS).split()  # three times as fast as an expression
    return _WORD.findall(lowered)


def _counts(words: Iterable[str], codes: tuple[str, ...]) -> Counter[str]:
    """For each language the number of its function words."""
    speakers = _speakers(codes)
    return Counter(code for word in words for code in speakers.get(word, ()))


@cache
def _speakers(codes: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """The languages that have each function word."""
    speakers: dict[str, list[str]] = {}
    for code in codes:
        found = language(code)
        for word in found.stop_words | found.negations:
            speakers.setdefault(word, []).append(code)
    return speakers
