"""Languages: how their text is read as tokens and keys, and which one a text is in."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ragspan.text import keys as english
from ragspan.text.keys import HAN_KANA, MARK, MARKS, NEGATION, WITHOUT_SPACES, common, number_key
from ragspan.text.lazy import Lazy
from ragspan.text.vocabulary import FUNCTION_WORDS, LANGUAGES, pairs_of
from ragspan.turns import give_turn

WITH_WORDS: Final = tuple(code for code, words in LANGUAGES.items() if "framing" in words)
"""ISO 639-1 codes of the languages whose numbers, denials and phrases are known."""
NO_LETTERS: Final = str.maketrans({sign: " " for sign in map(chr, range(128)) if not sign.isalpha()})
"""For `str.translate`: words apart, three times as fast as an expression."""

_MIDDLE = 0.24
_CUT = 5  # letters of a word that count: what follows is mostly inflection
_LONGEST_GAP = 40  # characters between the parts of a phrase
_INSIDE = re.compile("[\u00ad\u0640\u200b-\u200f\u2060]")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652]")
_RUN = re.compile(f"[{WITHOUT_SPACES}]")
_HAN = re.compile(f"[{HAN_KANA}]")
_CLUSTER = re.compile(rf"[^{MARKS}][{MARKS}]*")


class Language:
    """How the text of one language is read. `language` gives the one with a code, `guess` that of a text.

    `is_number`, `is_content` and `is_negation` of `text.keys` take the keys of any language. Safe from any thread.
    """

    def __init__(self, code: str, words: Mapping[str, Any]) -> None:
        self.code: Final = code  # ISO 639-1; `und` where the language is not known
        self.name: Final[str] = words.get("name", "an unknown language")
        own = words.get("function_words")
        self.stop_words: Final = frozenset(own.split()) if own else _common(code)
        """Words too common to show where a sentence comes from, in lower case."""
        self.negations: Final = frozenset(words.get("negations", "").split())  # words that deny, in lower case
        self.abbreviations: Final = frozenset(words.get("abbreviations", "").split())
        self.has_ordinal_points: Final[bool] = words.get("ordinal_points", False)
        """ "24. Mai": a full stop after a number ends no sentence."""
        gap = f".{{0,{_LONGEST_GAP}}}?"
        refusals = (gap.join(map(re.escape, one.split(" … "))) for one in words.get("refusals", "").split("|") if one)
        self.refusals: Final = re.compile("|".join(refusals) or "(?!)")
        """Phrases of refusals, in lower case; `…` means some words. Matches nothing where none is known."""
        self.capitalises_nouns: Final[bool] = words.get("capitalised_nouns", False)
        """Then a capital is not a sign of a name."""
        self.middle: Final[float] = words.get("middle", _MIDDLE)
        """The score of a response that is as likely supported as not."""
        self.key: Callable[[str], str] = english.key if code == "en" else lru_cache(maxsize=1 << 15)(self._key)
        """Makes a token's key: what it is compared by."""
        self._words = words
        self._numbers = pairs_of(words.get("numbers", ""))
        self._elides = words.get("apostrophe") == "elision"
        kept, denying = words.get("not_negations", "").split(), sorted(self.negations, key=len, reverse=True)
        whole = "|".join(map(re.escape, [*kept, *denying])) or "(?!)"
        self._pieces = re.compile(rf"(?P<whole>{whole})|(?:(?!{whole}).)+", re.DOTALL)

    @Lazy
    def neutral_keys(self) -> frozenset[str]:
        """The keys of words that a response may use though no context does."""
        return frozenset(map(self.key, self._words.get("neutral_words", "").split()))

    def tokens(self, text: str) -> list[str]:
        """Words, numbers, times, `%` and currency signs, as they are written.

        Without spaces between words, a token is a pair of neighbouring signs; in Chinese and Japanese each sign as well.
        """
        found = english.tokens(text, months=self.code == "en")
        if text.isascii() and not self._elides:
            return found
        return [part for token in found for part in self._parts(token)]

    def keys(self, text: str) -> list[str]:
        """The keys of the text's tokens."""
        return list(map(self.key, self.tokens(text)))

    def _parts(self, token: str) -> Sequence[str]:
        if _RUN.match(token):
            return [part for piece in self._pieces.finditer(token) for part in _signs(piece)]
        if "'" in token and self._elides:
            return [part for part in token.partition("'")[::2] if part]
        return (token,)

    def _key(self, token: str) -> str:
        word = _INSIDE.sub("", unicodedata.normalize("NFKC", token))
        if self.code == "tr":
            word = word.replace("I", "ı").replace("İ", "i")
        word = word.lower() or token
        if word.lstrip(".")[:1].isdigit():
            return number_key(word, self._words.get("decimal", "."))
        word = word.partition("'")[0] or word
        word = word.replace(".", "") or word
        if word == "٪":
            return "%"
        if word in self.negations:
            return common(NEGATION, word)
        if number := self._numbers.get(word):
            return number
        # Single signs of hiragana write particles and endings.
        if word in self.stop_words or ("\u3040" <= word <= "\u309f" and len(word) == 1):
            return common(MARK, word)
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
        stem = unicodedata.normalize("NFC", bare)[:_CUT] or word
        return f"{stem}'" if stem in FUNCTION_WORDS else stem


def _signs(piece: re.Match[str]) -> list[str]:
    """A piece of a run of signs; of Han and kana each sign as well, which is found where a pair is not."""
    if piece.lastgroup == "whole":
        return [piece[0]]
    if not _HAN.match(piece[0]):  # pairs of neighbouring signs, each a letter with its marks
        signs: list[str] = _CLUSTER.findall(piece[0]) or [piece[0]]
        return signs if len(signs) == 1 else [one + other for one, other in pairwise(signs)]
    return [part for at, sign in enumerate(piece[0]) for part in (sign, piece[0][at : at + 2]) if part][:-1]


def _common(code: str) -> frozenset[str]:
    """The function words of a language, but for those that a language without spaces is cut up by."""
    if code in {"en", "zh", "ja", "und"}:
        return frozenset()
    stopwordsiso = import_module("stopwordsiso")  # only where a text is in such a language
    return frozenset(filter(str.isalpha, stopwordsiso.stopwords(code) if stopwordsiso.has_lang(code) else ()))


@cache
def language(code: str) -> Language:
    """The language with this ISO 639-1 code; `und`, which has no words of its own, for a code that is not known."""
    if code not in LANGUAGES:
        return UNKNOWN
    return ENGLISH if code == "en" else Language(code, LANGUAGES[code])


ENGLISH: Final = Language("en", LANGUAGES["en"])
UNKNOWN: Final = Language("und", {})

# Which language a text is in

_SAMPLE, _HEAD = 1_500, 600  # characters of a response or a question that are looked at, and of a context
_MOST_CONTEXTS = 8
_SHARE = 0.1
"""The least share of a text's words that are function words of its language, and of its letters that are of another script."""
_ENOUGH, _FEW = 4, 3
"""Function words that a text in Latin letters needs, and that the short texts of a record need together."""
_NO_PROSE = re.compile(
    r"```.{0,1500}?(?:```|$)|`[^`\n]{1,200}`|https?://\S{1,300}|\S{1,80}@\S{1,80}|<[^>\n]{1,200}>", re.DOTALL
)
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|'(?=[^\W\d_])){{0,30}}")
_SCRIPTS = {"cjk": "han", "hiragana": "kana", "katakana": "kana", "halfwidth": "kana", "fullwidth": "latin"}
"""Scripts by the first word of Unicode's names of their letters, where it is another."""
_WITH_SIGNS = frozenset({"han", "kana", "thai", "lao", "myanmar", "khmer"})
_SIGNS_OF_A_WORD = 3  # a sign of these counts as so many letters


class _Sample(NamedTuple):
    """What the beginning of a text shows."""

    letters: Mapping[str, int]  # how many of each script; signs that say more than a letter count more
    script: str | None  # of most of the letters; None without any
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
    are_comparable: bool = True  # whether words of the response can be looked for in the contexts


def languages_of(response: str, contexts: Sequence[str], question: str = "") -> Languages:
    """The languages that a record is read in: one, unless the response is clearly in another than all of the contexts.

    All texts together decide. If they do not show it, a response in letters of ASCII is read as English.
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
        is_plain = all(sign.isascii() for sign in response[:_SAMPLE] if sign.isalpha())
        found = guess(" ".join(words), enough=_FEW) or (ENGLISH if is_plain else UNKNOWN)
    return Languages(found, found)


def _are_apart(response: _Sample, contexts: Sequence[str]) -> bool:
    """True if the response is clearly in another language than all of the contexts.

    Names alone do not show a language: a response is not apart if the contexts have half of its words.
    """
    there, words = "\n".join(contexts).lower(), set(response.words)
    read = [sample for sample in map(_read, contexts) if sample.script is not None]
    is_shown = response.script is not None and bool(read) and 2 * sum(word in there for word in words) < len(words)
    return is_shown and all(_differ(response, sample) for sample in read)


def _differ(response: _Sample, context: _Sample) -> bool:
    # The same names are written in Han and kana.
    alike = {"han", "kana"} if response.script in {"han", "kana"} else {response.script}
    if sum(context.letters.get(name or "", 0) for name in alike) < _SHARE * sum(context.letters.values()):
        return True
    first, second, said, held = response.language or "", context.language or "", response.counts, context.counts
    is_clear = response.script == "latin" and min(said.get(first, 0), held.get(second, 0)) >= _ENOUGH
    return is_clear and said[first] > 2 * said.get(second, 0) and held[second] > 2 * held.get(first, 0)


@lru_cache(maxsize=1024)
def _read(sample: str) -> _Sample:
    give_turn()
    if any(map(sample.__contains__, "`@<")) or "://" in sample:
        sample = _NO_PROSE.sub(" ", sample)
    letters = defaultdict(int, latin=int(sample.isascii() and any(map(str.isalpha, sample))))
    for sign, count in Counter(sample).items() if not sample.isascii() else ():
        if sign.isalpha():
            first = unicodedata.name(sign, "unknown").partition(" ")[0].lower()
            script = _SCRIPTS.get(first, first)
            letters[script] += count * (_SIGNS_OF_A_WORD if script in _WITH_SIGNS else 1)
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
        first = max(codes, key=counts.__getitem__, default="und")  # of equals
        return _Sample(letters, main, words, counts, first)
    counts["en"] = english
    best = max(counts, key=lambda code: (counts[code], code == "en"))  # English, of equals
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
