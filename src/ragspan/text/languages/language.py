"""How the text of one language is read: as tokens and as keys."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

from ragspan.text import keys as english
from ragspan.text.keys import MARK, NEGATION
from ragspan.text.languages.writing import (
    HAN_KANA,
    MARKS,
    SOUTH_EAST_ASIAN,
    WITHOUT_SPACES,
    WITHOUT_SPACES_NAMES,
    ascii_digits,
    canonical_number,
    han_number,
    number_pattern,
    pairs,
    segments,
    without_repetition,
)
from ragspan.text.lazy import Lazy
from ragspan.text.vocabulary import FUNCTION_WORDS, few_stems, pairs_of, stemmer_of, words_of

_TABLE: Final[Mapping[str, Mapping[str, Any]]] = words_of("languages")
CODES: Final = frozenset(_TABLE)
"""ISO 639-1 codes of the languages that are told apart. All others are read as `und`."""
WITH_WORDS: Final = ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "tr", "zh")
"""Those whose numbers, denials and phrases are known."""

_MIDDLE = 0.24
_LONGEST, _LONGEST_RUN, _LONGEST_GAP = 64, 4096, 40
_INSIDE = re.compile("[\u00ad\u0640\u200b-\u200f\u2060]")
_RUN = re.compile(f"[{WITHOUT_SPACES}]")


class Language:
    """How the text of one language is read. `language` gives the one with a code, `guess` that of a text.

    `is_number`, `is_content` and `is_negation` of `text.keys` take the keys of any language. Safe from any thread.
    """

    def __init__(self, code: str, words: Mapping[str, Any]) -> None:
        self.code: Final = code
        """ISO 639-1; `und` where the language is not known."""
        self.name: Final[str] = words.get("name", "an unknown language")
        self.script: Final[str | None] = words.get("script")
        self.stop_words: Final = (
            frozenset(words["function_words"].split()) if "function_words" in words else _common(code)
        )
        """Words too common to show where a sentence comes from, in lower case."""
        self.negations: Final = frozenset(words.get("negations", "").split())
        """Words that deny, in lower case."""
        self.number_words: Final = pairs_of(words.get("numbers", ""))
        """Number words as digits: "drei" → "3"."""
        self.replies: Final = frozenset(words.get("yes_no", "").split("|"))
        """What answers by itself: "yes", "correct"."""
        self.abbreviations: Final = frozenset(words.get("abbreviations", "").split())
        self.has_ordinal_points: Final[bool] = words.get("ordinal_points", False)
        """ "24. Mai": a full stop after a number ends no sentence."""
        self.refusals: Final = _phrases(words.get("refusals", ""))
        """Phrases of refusals, in lower case; matches nothing where none is known."""
        self.capitalises_nouns: Final[bool] = words.get("capitalised_nouns", False)
        """Then a capital is not a sign of a name."""
        self.middle: Final[float] = words.get("middle", _MIDDLE)
        """The score of a response that is as likely supported as not."""
        self._apostrophe = words.get("apostrophe")
        self._decimal = words.get("decimal", ".")
        self._whole = frozenset() if self.script in {"han", "kana"} else self.negations | self.stop_words
        self._whole |= self.negations
        self._cut = words.get("cut")
        self._not_negations = frozenset(words.get("not_negations", "").split())
        self._token = _token_pattern(self._decimal, spaced=words.get("thousands") == " ")
        self._stem = stemmer_of(words.get("stemmer"))
        self.reader: Any = None
        """The `SentenceReader` of its texts, which remembers their chunks."""
        self.is_shared = True
        """False for the language of one record, `with_few_stems`."""
        self.key: Callable[[str], str] = self._key_function()
        """Makes a token's key: what it is compared by."""
        self._neutral_words = words.get("neutral_words", "").split()
        self._calendar = words.get("calendar", "")

    def __reduce__(self) -> tuple[Callable[[str], Language], tuple[str]]:
        return language, (self.code,)

    @Lazy
    def neutral_keys(self) -> frozenset[str]:
        """The keys of words that a response may use though no context does."""
        return frozenset(map(self.key, self._neutral_words))

    @Lazy
    def calendar(self) -> tuple[frozenset[str], ...]:
        """The keys of the days of the week, and those of the months; English has its own."""
        return tuple(frozenset(map(self.key, names.split())) for names in self._calendar.split("|") if names)

    def with_few_stems(self) -> Language:
        """The same for one record of many words: only the first ones are stemmed."""
        few = object.__new__(type(self))
        vars(few).update(vars(self), is_shared=False, reader=None, _stem=few_stems(self._stem))
        for name in ("neutral_keys", "calendar"):
            vars(few).pop(name, None)
        few.key = few._key_function()
        return few

    def tokens(self, text: str) -> list[str]:
        """Words, numbers, times, `%` and currency signs, as they are written.

        Without spaces between words, a token is a pair of neighbouring signs; in Chinese and Japanese each sign as well.
        """
        found: list[str] = self._token.findall(text)
        if text.isascii() and self._apostrophe != "elision":
            return found
        return [part for token in found for part in self._parts(token)]

    def spelled(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Tokens as they are shown to people: those that overlap are one."""
        return tuple(without_repetition(tokens)) if self._cut or self.script in WITHOUT_SPACES_NAMES else tuple(tokens)

    def keys(self, text: str) -> list[str]:
        """The keys of the text's tokens."""
        return list(map(self.key, self.tokens(text)))

    def content_of(self, token_keys: Iterable[str]) -> frozenset[str]:
        """Those of the keys that are content."""
        return english.content_of(token_keys)

    def _key_function(self) -> Callable[[str], str]:
        return lru_cache(maxsize=1 << 15)(self._key)

    def _parts(self, token: str) -> Sequence[str]:
        first = token[0]
        if first >= "\u0e00" and _RUN.match(first):
            return segments(token, self._whole, self._not_negations)
        if self._cut is not None and first >= "\u0900" and first.isalpha():
            if token in self._whole:
                return (token,)
            found = pairs(token)  # because endings change: in place of the word, or with it
            return found if self._cut == "pairs" else [token, *found] if len(found) > 1 else (token,)
        if "'" in token and self._apostrophe == "elision":
            return [part for part in token.partition("'")[::2] if part]
        return (token,)

    def _key(self, token: str) -> str:
        if min(token) >= "\u4e00" and max(token) <= "\u9fff":  # Han is written in one way only
            return self._key_of_word(token)
        word = _INSIDE.sub("", unicodedata.normalize("NFKC", token))
        if self.code == "tr":
            word = word.replace("I", "ı").replace("İ", "i")
        word = word.lower() or token
        if word[0].isdigit():
            return canonical_number(ascii_digits(word), self._decimal)
        if "'" in word:
            word = word.replace("'", "") if self._apostrophe == "inside" else word.partition("'")[0] or word
        word = word.replace(".", "") or word
        if word == "٪":
            return "%"
        if "\u3040" <= word <= "\u309f" and len(word) == 1:
            return MARK + word  # hiragana writes particles and endings
        return self._key_of_word(word)

    def _key_of_word(self, word: str) -> str:
        if word in self.negations:
            return NEGATION + word
        number = self.number_words.get(word) or han_number(word)
        if number:
            return number
        if word in self.stop_words:
            return MARK + word
        stem = self._stem(word)
        return f"{stem}'" if stem in FUNCTION_WORDS else stem


class _English(Language):
    """English, which `text.keys` reads."""

    def tokens(self, text: str) -> list[str]:
        return english.tokens(text)

    def content_of(self, token_keys: Iterable[str]) -> frozenset[str]:
        return frozenset(token_keys) - FUNCTION_WORDS

    def _key_function(self) -> Callable[[str], str]:
        return english.key if self.is_shared else english.key_by(self._stem)


def _common(code: str) -> frozenset[str]:
    """The function words of a language, but for those that a language without spaces is cut up by."""
    if code in {"zh", "ja", "und"}:
        return frozenset()
    stopwordsiso = import_module("stopwordsiso")  # only where a text is in such a language
    if not stopwordsiso.has_lang(code):
        return frozenset()
    return frozenset(filter(str.isalpha, stopwordsiso.stopwords(code)))


def _phrases(phrases: str) -> re.Pattern[str]:
    """An expression for any of some phrases, separated by `|`; `…` in a phrase means some words."""
    gap = f".{{0,{_LONGEST_GAP}}}?"
    whole = "|".join(gap.join(map(re.escape, phrase.split(" … "))) for phrase in phrases.split("|") if phrase)
    return re.compile(whole or "(?!)")


@cache
def _token_pattern(decimal: str, *, spaced: bool) -> re.Pattern[str]:
    letter = rf"[^\W\d_{WITHOUT_SPACES}]"
    return re.compile(
        rf"""
          \d{{1,2}}[:hH]\d{{2}}(?::\d{{2}})?(?!\d)(?:\s?[AaPp]\.?[Mm]\b\.?)?    # 17:30, 17h30
        | {number_pattern(decimal, spaced=spaced)}
        | [%٪％$€£¥₹₽₺₩₫฿₪]
        | (?:{letter}\.){{2,8}}
        | [{HAN_KANA}]{{1,{_LONGEST_RUN}}} | [{SOUTH_EAST_ASIAN}]{{1,{_LONGEST_RUN}}}
        | (?:{letter}{{1,{_LONGEST}}}[{MARKS}]{{0,{_LONGEST}}}){{1,16}}(?:'{letter}{{1,16}})?
        """,
        re.VERBOSE,
    )


@cache
def language(code: str) -> Language:
    """The language with this ISO 639-1 code; `und`, which has no words of its own, for a code that is not in `CODES`."""
    if code not in CODES:
        return UNKNOWN if code == "und" else language("und")
    if code == "en":
        return ENGLISH
    return Language(code, {**_TABLE[code], **(words_of(code) if code in WITH_WORDS else {})})


ENGLISH: Final = _English("en", {**_TABLE["en"], **words_of("en")})
UNKNOWN: Final = Language("und", {})
