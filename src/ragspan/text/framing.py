"""The phrases with which assistants frame what they say: what names the source, what is only polite.

Names of sources are known in all languages at once, because an answer may cite in another language than its own. Whole phrases are
those of the answer's language and of English, in which most templates are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Final, Literal, TypeAlias

from ragspan.text.languages.language import WITH_WORDS, Language, language
from ragspan.text.vocabulary import word_set, words_of

LANGUAGES: Final = WITH_WORDS
"""Languages whose phrases are known; of others only questions are, and what is said in English."""

_WORD = r"(?:[^\s,.;:!?()\[\]]{1,40}(?:\.\d{1,3}){0,3})"
_NO_SOURCE = r"(?!(?:a\s+result|terms\s+of|(?:the\s+)?case\s+of)\b)"
_PARTICIPLES = r"(?:having\s+\w{3,15}ed\b|(?:after\s+)?\w{3,12}ing\b(?:\s+(?:at|on|to|through|over|from|up))?)"
_EDGES = r"[\s>*_#\"'\u2022-]{0,8}"
_WITHOUT_SPACES = frozenset({"ja", "zh"})
_PHRASE_ENDS = (",", ":", "\uff0c", "\uff1a", "\u3001")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_CLOSING_MARKS = ")*_ "
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)])\s|\s{0,8}[\"'«]")
_REPLY = re.compile(
    r"\W{0,3}(?:yes|no|yeah|nope|ja|nein|oui|non|s\u00ed|sim|n\u00e3o|nee|tak|nie|\u0434\u0430|\u043d\u0435\u0442|evet|hay\u0131r)[,.!:]\s+",
    re.IGNORECASE,
)
_MOST_FRAMES = 3
_MOST_POLITE = 25
"""Words of a sentence that is only polite: a longer one says more."""
_MOST_OF_ITSELF = 12
_REACH = 160
"""Characters among which a phrase names its source."""
_SHORT = 300
"""Characters of an answer below which its language is no more than a guess: phrases of all languages count."""
_COURTESY = re.compile(
    r"""
    \W{0,9}(?:(?:sure|certainly|of\ course|absolutely|hello|hi|hey|thanks|thank\ you|(?:great|good)\ question|
    you(?:'|\ a)re\ (?:very\ |most\ )?welcome|no\ problem)(?:\ (?:there|thing|for\ asking))?\b[\s,.!:-]{0,5}){0,3}
    (?: $
      | (?:i(?:\ would|'d)\ be|i(?:\ a|')m)?\s?(?:happy|glad|here)\ to\ \w+\b
      | (?:i\ )?hope\ (?:this|that|it)\ (?:help|answer|clarif)
      | (?:please\ )?(?:let\ me\ know|feel\ free|do\ not\ hesitate|don't\ hesitate)\b
      | (?:is\ there\ anything\ else|how\ (?:can|may)\ i\ (?:help|assist))\b
      | (?:for\ (?:more|further)\ (?:information|details),?|see\ [^\n]{1,80}\ for\ (?:more|further))\b
      | dear\ [^.!?\n]{1,40}[,:]?$
      | here(?:'s|\ is|\ are)\b[^\n]*:\W{0,9}$
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NAMED_BESIDE = word_set("and or of the a an to for in by & policy handbook guide manual report act code")
_LEADING = word_set("from in via per see cf")
_FEW_WORDS = 2
_NOTHING = re.compile(r"(?!)")
_FIRST = 4
"""Words among which a phrase begins that opens a sentence; marks and an answering "Yes" may stand before it."""
_MOST_WORDS = 1 << 14
"""Words that are remembered with whether a phrase begins with them."""
_POLITE = (
    "sure|certainly|of course|absolutely|hello|hi|hey|thanks|thank you|great question|good question|you are|you're|no problem|"
    "i hope|i'd|i'm|i am|happy to|glad to|here is|here's|hope this|please|let me|feel free|do not|don't|is there|how can|"
    "for more|see a|dear you"
)
"""How what `_COURTESY` matches begins."""


class _Beginnings(dict[str, int]):
    """For each word, with the marks around it, which kinds of phrase may begin with it, as bits.

    Most sentences have no such word, and need no further look. Safe from any thread: at worst, two look at one word.
    """

    def __init__(self, *kinds: re.Pattern[str]) -> None:
        self._kinds = kinds
        self._any = re.compile("|".join(kind.pattern for kind in kinds))

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        lowered = word.lower()
        kinds = enumerate(self._kinds if self._any.search(lowered) else ())
        found = self[word] = sum(1 << at for at, kind in kinds if kind.search(lowered))
        return found

    def of(self, words: Iterable[str]) -> int:
        """The kinds of all words."""
        return reduce(or_, {*map(self.__getitem__, words)}, 0)


_GREETS, _THANKS_FIRST, _OPENS, _THANKS, _NAMES = (1 << kind for kind in range(5))
_AT_BEGINNING, _ANYWHERE = _GREETS | _THANKS_FIRST | _OPENS, _THANKS | _NAMES


class Framing:
    """The phrases of one language."""

    def __init__(self, code: str, words: Mapping[str, Any]) -> None:
        self._negations = language(code).negations
        self._is_english = code == "en"
        is_spaced = code not in _WITHOUT_SPACES
        thanks = words.get("courtesies", "").split("|")
        first = [phrase[1:] for phrase in thanks if phrase.startswith("^")]
        others = [phrase for phrase in thanks if phrase and not phrase.startswith("^")]
        self._courtesy_first = re.compile(rf"\W{{0,9}}(?:{_gapped(first)})")
        self._courtesies = re.compile((r"(?<!\w)" if is_spaced else "") + rf"(?:{_gapped(others)})")
        exclaimed = _any(words["interjections"]) if words else "(?!)"
        self._exclamation = re.compile(
            rf"\W{{0,9}}(?:{exclaimed})(?:\W{{1,5}}(?:{exclaimed})){{0,2}}\W{{0,9}}$", re.IGNORECASE
        )
        self._of_itself = (
            re.compile(rf"\W{{0,9}}(?:{_any(words['self'])})\s", re.IGNORECASE) if words.get("self") else _NOTHING
        )
        self._source = re.compile(_nouns(words["sources"]) if words else "(?!)", re.IGNORECASE)
        self._phrases = _opening(_phrases(words, is_spaced=is_spaced) if words else ())
        self._named = _opening((_spaced if is_spaced else _unspaced)(words) if words else ())
        self._inside = re.compile(_inside(words), re.IGNORECASE) if is_spaced and words.get("per") else _NOTHING
        greeting = words.get("interjections", "").split("|")
        opening = "|".join(words.get(name, "") for name in ("framing", "interjections", "self", "presenting")).split(
            "|"
        )
        kinds = (
            _firsts(greeting + (_POLITE.split("|") if self._is_english else []), are_whole=True),
            _firsts(first),
            _firsts(opening, are_whole=True),
            _firsts(others),
            _firsts(words.get("sources", "").split("|")),
        )
        self._beginnings = _Beginnings(*(kinds if is_spaced else (re.compile(r"[^\x00-\x7f]"),) * len(kinds)))

    def kinds_in(self, words: Sequence[str]) -> int:
        """Which kinds of phrase some words may have, as bits."""
        first, others = self._beginnings.of(words[:_FIRST]), self._beginnings.of(words[_FIRST:])
        return first & _AT_BEGINNING | (first | others) & _ANYWHERE

    def is_courtesy(self, sentence: str, kinds: int) -> bool:
        """Whether a sentence is only polite; a long one, or one with a number, is not, unless it announces the answer."""
        if kinds & _GREETS and ((self._is_english and _COURTESY.match(sentence)) or self._exclamation.match(sentence)):
            return True
        if not kinds & (_THANKS_FIRST | _THANKS) or any(map(str.isdigit, sentence)):
            return False
        words = sentence.split()
        said = " ".join(words).lower()
        return len(words) <= _MOST_POLITE and bool(
            (kinds & _THANKS_FIRST and self._courtesy_first.match(said))
            or (kinds & _THANKS and self._courtesies.search(said))
        )

    def tells_of_search(self, sentence: str) -> bool:
        """Whether a sentence only tells that the assistant looked somewhere, and is not a refusal: "I have read your documents."."""
        if self._of_itself.match(sentence) is None or self._source.search(sentence) is None:
            return False
        return not (
            any(map(str.isdigit, sentence)) or len(sentence.split()) > _MOST_OF_ITSELF or self._denies(sentence)
        )

    def opening(self, sentence: str, at: int, kinds: int) -> re.Match[str] | None:
        """The phrase that names the source at a place of a sentence, unless it denies something."""
        for kind, pattern in ((_OPENS, self._phrases), (_NAMES, self._named)):
            match = pattern.match(sentence, at) if kinds & kind else None
            if match is not None and not self._denies(match[0]):
                return match
        return None

    def inside(self, sentence: str, at: int, kinds: int) -> Iterator[re.Match[str]]:
        """The phrases after a place of a sentence that name the source: ", according to the manual,"."""
        return self._inside.finditer(sentence, at) if kinds & _NAMES else iter(())

    def _denies(self, phrase: str) -> bool:
        words = phrase.lower().replace(",", " ").split()
        return any(word in self._negations or word.endswith("n't") for word in words)


Likely: TypeAlias = Sequence[tuple[Framing, int]]
"""The languages of which a sentence may have phrases, each with the kinds of these."""


def likely(sentence: str, spoken: Iterable[Framing]) -> Likely:
    """Those of some languages of which a phrase may begin with a word of a sentence."""
    words = sentence.split()
    found = ((framing, framing.kinds_in(words)) for framing in spoken)
    return [one for one in found if one[1]]


def kind_of(sentence: str, spoken: Likely) -> Literal["courtesy", "question"] | None:
    """What a sentence is that states no fact; None for others."""
    asks = sentence.rstrip(_CLOSING_MARKS).endswith(_QUESTION_MARKS)
    if asks and not _ITEM.match(sentence) and not sentence.count('"') % 2 and "``" not in sentence:
        return "question"  # the assistant's own: not one that it lists or quotes
    return "courtesy" if any(framing.is_courtesy(sentence, kinds) for framing, kinds in spoken) else None


def places(sentence: str, spoken: Likely) -> Iterator[tuple[int, int]]:
    """Where a sentence names its source in place of a fact: at its beginning, and inside it."""
    reply = _REPLY.match(sentence) if spoken else None
    at = reply.end() if reply else 0
    opening = spoken
    for _ in range(_MOST_FRAMES):
        found = (framing.opening(sentence, at, kinds) for framing, kinds in opening)
        match = next((match for match in found if match is not None), None)
        if match is None:
            break
        yield match.span()
        at = match.end()
        opening = likely(sentence[at:], [framing for framing, _ in spoken])
    for framing, kinds in spoken:
        for match in framing.inside(sentence, at, kinds):
            yield match.span()
            at = match.end()


def frames(text: str) -> bool:
    """Whether a text that stands by itself says where a fact comes from, as "according to the manual"."""
    bare = text.strip()
    found = (framing.opening(bare, 0, kinds) for framing, kinds in likely(bare, map(_framing, LANGUAGES)))
    rests = (bare[match.end() :].strip(" .#0123456789") for match in found if match is not None)
    return any(rest.isalpha() or not rest for rest in rests)


def names_source(text: str, *, dated: bool) -> bool:
    """Whether a few words are the name of a source: "Policy Handbook", "document 3", with a year or without."""
    if not _source_noun().search(text):
        return False
    words = text.split()
    named = [word for word in words if word[0].isupper() or word.lower() in _NAMED_BESIDE or word[0].isdigit()]
    if dated or len(named) == len(words):
        return True
    nouns = [_source_noun().fullmatch(word.strip(",:")) is not None for word in words]
    return (
        (nouns[0] and len(words) <= _FEW_WORDS)
        or (nouns[-1] and len(words) <= _FEW_WORDS)
        or (words[0] in _LEADING and any(nouns))
    )


def _phrases(words: Mapping[str, Any], *, is_spaced: bool) -> Iterator[str]:
    """Whole phrases, after which a comma may be a colon, and words that only greet or agree before what follows."""
    phrases = words["framing"].split("|")
    ended = "|".join(phrase.rstrip(" ,:\uff0c\uff1a\u3001") for phrase in phrases if phrase[-1] in _PHRASE_ENDS)
    yield rf"(?:{_any(ended)})(?:\s*[,:\uff0c\uff1a\u3001]|\s+-+(?=\s))\s*"
    yield (
        rf"(?:{_any('|'.join(phrase for phrase in phrases if phrase[-1] not in _PHRASE_ENDS))})(?!\w)\s*"
        if is_spaced
        else "(?!)"
    )
    yield rf"(?:{_any(words['interjections'])})\s*[,!\uff01\uff0c\u3001]\s*"
    if words.get("self") and words.get("that"):
        told = rf"(?:{_any(words['that'])})(?:\s+|(?<='))"
        yield rf"(?:{_any(words['self'])})\s+(?:{_WORD}\s+){{0,8}}?{told}"
    between = rf"(?:\s+{_WORD}){{0,8}}\s*" if is_spaced else r"[^\u3002\uff0c\uff1a\n]{0,15}"
    yield rf"(?:{_any(words['presenting'])}){between}[:\uff1a]\s*"


def _spaced(words: Mapping[str, Any]) -> Iterator[str]:
    source = rf"{_NO_SOURCE}(?:{_WORD}\s+){{0,5}}?(?:\w')?[\"']?(?:{_nouns(words['sources'])})\b(?:\.[a-z]{{2,5}}\b)?[\"']?(?:\s+\([^()\n]{{0,20}}\))?"
    that = f"(?:{_any(words['that'])})" if words.get("that") else "(?!)"
    told = (
        rf"(?:(?:(?:{_any(words['impersonal'])})\s+(?:{_WORD}\s+){{0,3}})?{that}\s+)?"
        if words.get("impersonal")
        else ""
    )
    if words.get("per"):
        yield rf"(?:{_any(words['per'])})\s+{source}(?:(?:\s+{_WORD}){{0,5}}\s*[,:]|\s*[,:])?\s*{told}"
        yield rf"(?:{_any(words['per'])})\s*[,:]\s*"
    if words.get("within"):
        yield rf"(?:{_any(words['within'])})\s+{source}(?:\s+{_WORD}){{0,4}}\s*[,:]\s*{told}"
        places = _any(words["within"], words.get("per", ""))
        yield rf"(?:{places})\s+{source}(?:\s+{_WORD}){{1,4}}?,?\s+{that}\s+"
        if words.get("impersonal"):
            yield rf"(?:{_any(words['impersonal'])})\s+(?:{_WORD}\s+){{1,6}}?(?:{places})\s+{source}\s+{that}(?:\s+|(?<='))"
    if words.get("as"):
        yield rf"(?:{_any(words['as'])})\s+{source}(?:\s+{_WORD}){{0,2}}\s*,\s*"
    if words.get("participle"):
        yield rf"{_PARTICIPLES}\s+{source}(?:\s+{_WORD}){{0,3}}\s*,\s*"
    if words.get("after"):
        yield rf"{source}\s+(?:{_WORD}\s+)?(?:{_any(words['after'])})\b\s*,?\s*"
        yield rf"{source}\s+(?:{_WORD}\s+){{1,3}}?{_WORD}:\s+"
    yield rf"{source}\s+(?:{_WORD},?\s+){{1,4}}?{that}(?:\s+|(?<='))"
    yield rf"{source}\s+(?:{_WORD}\s+){{0,2}}{_WORD}:\s+"


def _inside(words: Mapping[str, Any]) -> str:
    source = rf"(?:{_WORD}\s+){{0,5}}?(?:\w')?(?:{_nouns(words['sources'])})\b"
    return rf"\s*,?\s+(?:{_any(words['per'])})\s+{source}(?:\s+{_WORD}){{0,2}}(?=\s*(?:[,.;!?)]|$))"


def _unspaced(words: Mapping[str, Any]) -> Iterator[str]:
    source = rf"[^、。，,：:\n]{{0,24}}?(?:{_any(words['sources'])})[^、。，,：:\n]{{0,8}}?"
    if words.get("after"):
        yield rf"{source}(?:{_any(words['after'])})[、,，]?"
        yield rf"{source}(?:{_any(words['within'])})[、,，]"
    else:
        yield rf"(?:{_any(words['per'], words['within'])}){source}[，,：:、]"
        yield rf"{source}(?:{_any(words['stating'])})[，,：:]?"


def _nouns(*texts: str) -> str:
    """Words for sources: of those that end in "*", whatever follows; else an "s" may."""
    alternatives = {
        rf"{re.escape(word[:-1])}\w{{0,12}}" if word.endswith("*") else rf"{re.escape(word)}s?"
        for text in texts
        for word in text.split("|")
    }
    return "|".join(sorted(alternatives, key=len, reverse=True))


def _opening(patterns: Iterable[str]) -> re.Pattern[str]:
    """An expression for any of some phrases at the beginning; matches nothing where there is none."""
    return re.compile(rf"{_EDGES}(?:{'|'.join(patterns) or '(?!)'})", re.IGNORECASE)


def _gapped(phrases: Iterable[str]) -> str:
    """An expression for any of some phrases, of which `…` means some words; matches nothing where there is none."""
    return "|".join(r"[^.]{0,20}?".join(map(re.escape, phrase.split(" … "))) for phrase in phrases) or "(?!)"


def _any(*texts: str) -> str:
    phrases = {phrase for text in texts for phrase in text.split("|") if phrase}
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in sorted(phrases, key=len, reverse=True))


def _firsts(phrases: Iterable[str], *, are_whole: bool = False) -> re.Pattern[str]:
    """An expression for the words that some phrases begin with; `are_whole`: of one word alone only that word."""
    words = [phrase.lower().split() for phrase in phrases if phrase.strip()]
    firsts = {re.escape(first.strip(",:!*")) + (r"(?!\w)" if rest or are_whole else "") for first, *rest in words}
    return re.compile(rf"(?<!\w)(?:{'|'.join(sorted(firsts))})" if firsts else "(?!)")


def framings_of(answer: str, spoken: Language) -> Sequence[Framing]:
    """The phrases to look for in an answer in this language."""
    codes = LANGUAGES if len(answer) < _SHORT else dict.fromkeys((spoken.code, "en"))
    return [_framing(code) for code in codes]


@cache
def _framing(code: str) -> Framing:
    return Framing(code, words_of(code) if code in LANGUAGES else {})


def head_of_source(text: str) -> re.Match[str] | None:
    """The beginning of a text that names a source: "Source: ", "see "."""
    head, beginnings = _source_head()
    return head.match(text) if not text.isascii() or beginnings.of(text[:_REACH].split()[:_FIRST]) else None


@cache
def _source_head() -> tuple[re.Pattern[str], _Beginnings]:
    heads = _any(*(words_of(code)["citing"] for code in LANGUAGES))
    labels = _any(*(words_of(code).get("citing_labels", "") for code in LANGUAGES))
    headed = rf"(?:{heads})s?\b[*_]{{0,3}}(?:\s?[:：]|\.?\s(?=\S)|[*_\s]*$)|(?:{labels})s?[*_]{{0,3}}\s?[:：]"
    phrases = "|".join(f"{words_of(code)['citing']}|{words_of(code).get('citing_labels', '')}" for code in LANGUAGES)
    return re.compile(rf"{_EDGES}\W{{0,4}}(?:{headed})", re.IGNORECASE), _Beginnings(_firsts(phrases.split("|")))


@cache
def _source_noun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_nouns(*(words_of(code)['sources'] for code in LANGUAGES))})\b", re.IGNORECASE)
