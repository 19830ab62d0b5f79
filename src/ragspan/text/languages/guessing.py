"""Guesses the language of a text by its script and its function words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from ragspan.text.languages.language import ENGLISH, MARKS, NO_LETTERS, UNKNOWN, WITH_WORDS, Language, language
from ragspan.text.vocabulary import FUNCTION_WORDS, LANGUAGES

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
_NAMES = {"cjk": "han", "hiragana": "kana", "katakana": "kana", "halfwidth": "kana", "fullwidth": "latin"}
"""Scripts by the first word of Unicode's names of their letters, where it is another."""
_SIGNS = frozenset({"han", "kana", "thai", "lao", "myanmar", "khmer"})
_SIGNS_OF_A_WORD = 3
"""A sign of these counts as so many letters."""


class _Sample(NamedTuple):
    """What the beginning of a text shows."""

    letters: Mapping[str, int]
    """How many of each script; signs that say more than a letter count more."""
    script: str | None
    """Of most of the letters; None without any."""
    words: Sequence[str]
    counts: Mapping[str, int]
    """For each language of the script the number of its function words; for English alone where it is clear."""
    language: str | None
    """The code of the language with most of them, if they are enough of the words; without any, the first of another script."""


def guess(text: str, *, enough: float = _ENOUGH) -> Language | None:
    """The language of a text; None if the text does not show it, `und` if its script is known and its language is not.

    Only the beginning is read, without code, addresses and tags. A language in Latin letters needs `enough` function words.
    """
    found = _read(text[:_SAMPLE])
    if found.language is None or (found.script == "latin" and found.counts[found.language] < enough):
        return None
    return language(found.language)


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


def languages_of(response: str, contexts: Sequence[str], question: str = "") -> Languages:
    """The languages that a record is read in: one, unless the response is clearly in another than all of the contexts.

    All texts together decide. If they do not show it, a response in ASCII is read as English.
    """
    heads = [text[:_HEAD] for text in contexts[:_MOST_CONTEXTS]]
    said = guess(response)
    if said is not None and any(guess(head) is said for head in heads):
        return Languages(said, said)
    read = [found for found in map(guess, heads) if found is not None]
    if _are_apart(_read(response[:_SAMPLE]), heads):
        return Languages(said or UNKNOWN, read[0] if read else UNKNOWN, are_comparable=False)
    found = said if not read else read[0] if said is None else guess(f"{response[:_HEAD]}\n{' '.join(heads)}")
    if found is None:
        words = dict.fromkeys(word for text in [response, question, *heads] for word in text[:_HEAD].split())
        found = guess(" ".join(words), enough=_FEW) or (ENGLISH if response.isascii() else UNKNOWN)
    return Languages(found, found)


def _are_apart(response: _Sample, contexts: Sequence[str]) -> bool:
    """True if the response is clearly in another language than all of the contexts.

    Names alone do not show a language: a response is not apart if the contexts have half of its words.
    """

    def differs(context: _Sample) -> bool:
        # The same names are written in Han and kana.
        alike = ("han", "kana") if response.script in {"han", "kana"} else (response.script or "",)
        if sum(context.letters.get(name, 0) for name in alike) < _SHARE * sum(context.letters.values()):
            return True
        first, second, said, held = response.language, context.language, response.counts, context.counts
        if (
            response.script != "latin"
            or first is None
            or second is None
            or min(said[first], held.get(second, 0)) < _ENOUGH
        ):
            return False
        return said[first] > 2 * said.get(second, 0) and held[second] > 2 * held.get(first, 0)

    texts = [text for text in contexts if any(map(str.isalpha, text))]
    if response.script is None or not texts or not all(differs(_read(text)) for text in texts):
        return False
    there = "\n".join(texts).lower()
    return 2 * sum(word in there for word in set(response.words)) < len(set(response.words))


@lru_cache(maxsize=1024)
def _read(sample: str) -> _Sample:
    if any(map(sample.__contains__, "`@<")) or "://" in sample:
        sample = _NO_PROSE.sub(" ", sample)
    letters = Counter({"latin": int(sample.isascii() and any(map(str.isalpha, sample)))})
    for sign, count in Counter(sample).items() if not sample.isascii() else ():
        if sign.isalpha():
            first = unicodedata.name(sign, "unknown").partition(" ")[0].lower()
            script = _NAMES.get(first, first)
            letters[script] += count * (_SIGNS_OF_A_WORD if script in _SIGNS else 1)
    main = max(letters, key=letters.__getitem__)
    if not letters[main]:
        return _Sample(letters, None, (), {}, None)
    main = "kana" if main == "han" and letters["kana"] * 10 > letters["han"] else main
    lowered = sample.lower().replace("\u2019", "'")
    words = lowered.translate(NO_LETTERS).split() if lowered.isascii() else _WORD.findall(lowered)
    english = sum(map(FUNCTION_WORDS.__contains__, words)) if main == "latin" else 0
    if english >= _ENOUGH and 3 * english >= len(words):
        return _Sample(letters, main, words, {"en": english}, "en")
    codes, speakers = _speakers(main)
    counts = Counter(code for word in words for code in speakers.get(word, ()))
    if main != "latin":
        return _Sample(
            letters, main, words, counts, max(codes, key=counts.__getitem__, default="und")
        )  # the first of equals
    counts["en"] = english
    best = max(counts, key=counts.__getitem__)
    return _Sample(letters, main, words, counts, best if counts[best] >= max(1, _SHARE * len(words)) else None)


@cache
def _speakers(script: str) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
    """The languages of a script but for English, and for each function word those that have it."""
    codes = [code for code, words in LANGUAGES.items() if words["script"] == script and code != "en"]
    codes.sort(key=lambda code: (code not in WITH_WORDS, code))
    speakers: dict[str, list[str]] = {}
    for code in codes:
        for word in language(code).stop_words | language(code).negations:
            speakers.setdefault(word, []).append(code)
    return codes, speakers
