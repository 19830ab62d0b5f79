"""Guesses the language of a text by its script and its function words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from ragspan.text.languages.language import ENGLISH, MARKS, SCRIPTS, UNKNOWN, WITH_WORDS, Language, language
from ragspan.text.vocabulary import FUNCTION_WORDS

_SAMPLE, _HEAD = 1_500, 600
"""Characters of a response or a question that are looked at, and of a context."""
_MOST_CONTEXTS = 8
_SHARE = 0.1
"""The least share of a text's words that are function words of its language, and of its letters that are of another script."""
_ENOUGH, _FEW = 4, 3
"""Function words that a text in Latin letters needs, and that the short texts of a record need together."""

_NO_PROSE = re.compile(
    r"```.{0,1500}?(?:```|$)|`[^`\n]{1,200}`|https?://\S{1,300}|\S{1,80}@\S{1,80}|<[^>\n]{1,200}>", re.DOTALL
)
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|'(?=[^\W\d_])){{0,30}}")
_NO_LETTERS = str.maketrans({sign: " " for sign in map(chr, range(128)) if not sign.isalpha()})
_NAMES = {"cjk": "han", "hiragana": "kana", "katakana": "kana", "halfwidth": "kana", "fullwidth": "latin"}
"""Scripts by the first word of Unicode's names of their letters, where it is another."""
_SIGNS = frozenset({"han", "kana", "thai", "lao", "myanmar", "khmer"})
_SIGNS_OF_A_WORD = 3
"""A sign of these counts as so many letters."""
_OF_SCRIPT: Final = {
    script: sorted(
        (code for code, one in SCRIPTS.items() if one == script), key=lambda code: (code not in WITH_WORDS, code)
    )
    for script in set(SCRIPTS.values())
}
_LATIN: Final = tuple(code for code in sorted(_OF_SCRIPT["latin"]) if code != "en")
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
    script = _main_script(_letters_by_script(sample))
    if script is None:
        return None, 0
    if script != "latin":
        codes = _OF_SCRIPT.get(script, ["und"])
        counts = _counts(_words(sample), tuple(codes)) if len(codes) > 1 else Counter()
        return language(max(codes, key=lambda code: counts[code])), math.inf  # the first of equals
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

    @property
    def quick(self) -> Languages:
        """The same for one record of very many words."""
        return Languages(self.response.quick, self.contexts.quick, self.are_comparable)


def languages_of(response: str, contexts: Sequence[str], question: str = "") -> Languages:
    """The languages that a record is read in: one, unless the response is clearly in another than all of the contexts.

    All texts together decide. If they do not show it, the question does; else a response in ASCII is read as English.
    """
    heads = [text[:_HEAD] for text in contexts[:_MOST_CONTEXTS]]
    said = guess(response)
    if said is not None and any(guess(head) is said for head in heads):
        return Languages(said, said)
    read = [found for found in map(guess, heads) if found is not None]
    if _are_apart(response, heads):
        return Languages(said or UNKNOWN, read[0] if read else UNKNOWN, are_comparable=False)
    found = read[0] if read and said is None else said if not read else guess(f"{response[:_HEAD]}\n{' '.join(heads)}")
    if found is None and (found := guess(question)) is None:
        words = dict.fromkeys(word for text in [response, question, *heads] for word in text[:_HEAD].split())
        found = guess(" ".join(words), enough=_FEW) or (ENGLISH if response.isascii() else UNKNOWN)
    return Languages(found, found)


def _are_apart(response: str, contexts: Sequence[str]) -> bool:
    """True if the response is clearly in another language than all of the contexts.

    Names alone do not show a language: a response is not apart if the contexts have half of its words.
    """
    sample = _prose(response[:_SAMPLE])
    script = _main_script(_letters_by_script(sample))
    read = [text for text in contexts if any(map(str.isalpha, text))]
    if script is None or not read or not all(_differs(sample, script, _prose(text)) for text in read):
        return False
    words, there = set(_words(sample)), "\n".join(read).lower()
    return 2 * sum(word in there for word in words) < len(words)


def _differs(response: str, script: str, context: str) -> bool:
    there = _letters_by_script(context)
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


def _best(counts: Mapping[str, int], words: Sequence[str]) -> str | None:
    """The language with most function words, if they are enough of the words."""
    best = max(counts, key=counts.__getitem__, default="en")
    return best if counts.get(best, 0) >= max(1, _SHARE * len(words)) else None


def _prose(text: str) -> str:
    return _NO_PROSE.sub(" ", text) if any(map(text.__contains__, "`@<")) or "://" in text else text


def _letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script a sample has; signs that say more than a letter count more."""
    if text.isascii():
        return {"latin": 1} if any(map(str.isalpha, text)) else {}
    counts: dict[str, int] = {}
    for sign, count in Counter(text).items():
        if sign.isalpha():
            script = _script_of(sign)
            counts[script] = counts.get(script, 0) + count * (_SIGNS_OF_A_WORD if script in _SIGNS else 1)
    return counts


@lru_cache(maxsize=1 << 14)
def _script_of(sign: str) -> str:
    first = unicodedata.name(sign, "unknown").partition(" ")[0].lower()
    return _NAMES.get(first, first)


def _main_script(counts: Mapping[str, int]) -> str | None:
    """The script of most of the letters; None without any. With a tenth of kana, Han is Japanese."""
    main = max(counts, key=counts.__getitem__, default=None)
    return "kana" if main == "han" and counts.get("kana", 0) * 10 > counts["han"] else main


def _latin_counts(words: Sequence[str]) -> Counter[str]:
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
