"""The phrases with which assistants frame what they say: what names the source, what is only polite.

Names of sources are known in all languages at once, because an answer may cite in another language than its own. Whole phrases are
those of the answer's language and of English, in which most templates are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, Literal

from ragspan.text.languages.language import Language, language
from ragspan.text.vocabulary import word_set, words_of

LANGUAGES: Final = tuple("de en es fr it ja nl pl pt ru tr zh".split())  # noqa: SIM905  shorter
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


class Framing:
    """The phrases of one language."""

    def __init__(self, code: str, words: Mapping[str, Any]) -> None:
        self._negations = language(code).negations
        self._courtesies = re.compile(
            ("" if code in _WITHOUT_SPACES else r"(?<!\w)") + rf"(?:{_gapped(words.get('courtesies', ''))})"
        )
        self._is_english = code == "en"
        is_spaced = code not in _WITHOUT_SPACES
        patterns = list(_phrases(words, is_spaced=is_spaced)) if words else []
        exclaimed = _any(words["interjections"]) if words else "(?!)"
        self._exclamation = re.compile(
            rf"\W{{0,9}}(?:{exclaimed})(?:\W{{1,5}}(?:{exclaimed})){{0,2}}\W{{0,9}}$", re.IGNORECASE
        )
        self._of_itself = (
            re.compile(rf"\W{{0,9}}(?:{_any(words['self'])})\s", re.IGNORECASE) if words.get("self") else _NOTHING
        )
        named = list((_spaced if is_spaced else _unspaced)(words)) if words else []
        self._source = re.compile(_nouns(words["sources"]) if words else "(?!)", re.IGNORECASE)
        self._opening = [re.compile(_EDGES + pattern, re.IGNORECASE) for pattern in patterns]
        self._opening_with_source = [re.compile(_EDGES + pattern, re.IGNORECASE) for pattern in named]
        self._inside = re.compile(_inside(words), re.IGNORECASE) if is_spaced and words.get("per") else _NOTHING
        # Which words these begin with: most sentences have none, and need no further look.
        self._may_greet = _begins(words, "interjections", *([_POLITE] if self._is_english else []), is_spaced=is_spaced)
        self._may_thank = _begins(words, "courtesies", is_spaced=is_spaced)
        self._may_open = _begins(words, "framing", "interjections", "self", "presenting", is_spaced=is_spaced)
        self._may_name = _begins(words, "sources", is_spaced=is_spaced)
        self._may_matter = (self._may_greet, self._may_thank, self._may_open, self._may_name)

    def may_begin(self, word: str) -> bool:
        """Whether a phrase of any kind may begin with a word."""
        return any(may(word) for may in self._may_matter)

    def is_courtesy(self, sentence: str) -> bool:
        """Whether a sentence is only polite; a long one, or one with a number, is not, unless it announces the answer."""
        words = sentence.split()
        if any(map(self._may_greet, words[:_FIRST])) and (
            (self._is_english and _COURTESY.match(sentence)) or self._exclamation.match(sentence)
        ):
            return True
        if len(words) > _MOST_POLITE or not any(map(self._may_thank, words)) or any(map(str.isdigit, sentence)):
            return False
        return self._courtesies.search(" ".join(words).lower()) is not None

    def tells_of_search(self, sentence: str) -> bool:
        """Whether a sentence only tells that the assistant looked somewhere, and is not a refusal: "I have read your documents."."""
        if self._of_itself.match(sentence) is None or self._source.search(sentence) is None:
            return False
        return not (
            any(map(str.isdigit, sentence)) or len(sentence.split()) > _MOST_OF_ITSELF or self._denies(sentence)
        )

    def opening(self, sentence: str, at: int) -> re.Match[str] | None:
        """The phrase that names the source at a place of a sentence, unless it denies something."""
        words = sentence[at : at + _REACH].split()
        opens, names = any(map(self._may_open, words[:_FIRST])), any(map(self._may_name, words))
        for pattern in chain(self._opening if opens else (), self._opening_with_source if names else ()):
            match = pattern.match(sentence, at)
            if match is not None and match.end() > at and not self._denies(match[0]):
                return match
        return None

    def inside(self, sentence: str, at: int) -> Iterator[re.Match[str]]:
        """The phrases after a place of a sentence that name the source: ", according to the manual,"."""
        return self._inside.finditer(sentence, at) if any(map(self._may_name, sentence.split())) else iter(())

    def _denies(self, phrase: str) -> bool:
        words = phrase.lower().replace(",", " ").split()
        return any(word in self._negations or word.endswith("n't") for word in words)


def kind_of(sentence: str, spoken: Sequence[Framing]) -> Literal["courtesy", "question"] | None:
    """What a sentence is that states no fact; None for others."""
    asks = sentence.rstrip(_CLOSING_MARKS).endswith(_QUESTION_MARKS)
    if asks and not _ITEM.match(sentence) and not sentence.count('"') % 2 and "``" not in sentence:
        return "question"  # the assistant's own: not one that it lists or quotes
    if any(framing.is_courtesy(sentence) for framing in likely(sentence, spoken)):
        return "courtesy"
    return None


def likely(sentence: str, spoken: Sequence[Framing]) -> Sequence[Framing]:
    """Those of which a phrase may begin with a word of a sentence."""
    if len(spoken) < len(LANGUAGES):
        return spoken
    wanted = frozenset().union(*map(_beginning_with, sentence.split()))
    return [framing for at, framing in enumerate(spoken) if at in wanted]


@lru_cache(maxsize=_MOST_WORDS)
def _beginning_with(word: str) -> frozenset[int]:
    """The places in `LANGUAGES` of those of which a phrase may begin with a word."""
    return frozenset(at for at, code in enumerate(LANGUAGES) if _framing(code).may_begin(word))


def places(sentence: str, spoken: Sequence[Framing]) -> Iterator[tuple[int, int]]:
    """Where a sentence names its source in place of a fact: at its beginning, and inside it."""
    spoken = likely(sentence, spoken)
    reply = _REPLY.match(sentence)
    at = reply.end() if reply else 0
    for _ in range(_MOST_FRAMES):
        found = (framing.opening(sentence, at) for framing in spoken)
        match = next((match for match in found if match is not None), None)
        if match is None:
            break
        yield match.span()
        at = match.end()
    taken = at
    for framing in spoken:
        for match in framing.inside(sentence, taken):
            yield match.span()
            taken = match.end()


def frames(text: str) -> bool:
    """Whether a text that stands by itself says where a fact comes from, as "according to the manual"."""
    bare = text.strip()
    found = (_framing(code).opening(bare, 0) for code in LANGUAGES)
    return any(match is not None and not bare[match.end() :].strip(" .#0123456789") for match in found)


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
    yield rf"(?:{_any(ended)})\s*[,:\uff0c\uff1a\u3001]\s*"
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


def _gapped(phrases: str) -> str:
    """An expression for any of some phrases: `…` means some words, `^` the beginning; matches nothing where there is none."""
    gapped = (r"[^.]{0,20}?".join(map(re.escape, phrase.split(" … "))) for phrase in phrases.split("|") if phrase)
    return "|".join(phrase.replace(r"\^", r"^\W{0,9}", 1) for phrase in gapped) or "(?!)"


def _any(*texts: str) -> str:
    phrases = {phrase for text in texts for phrase in text.split("|") if phrase}
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in sorted(phrases, key=len, reverse=True))


def _begins(words: Mapping[str, Any], *names: str, is_spaced: bool) -> Callable[[str], bool]:
    """Whether a word, with the marks around it, may begin one of some phrases; for scripts without spaces, any may."""
    phrases = "|".join(words.get(name, name if "|" in name else "") for name in names) if words else ""
    return _known(phrases, is_spaced=is_spaced)


def _known(phrases: str, *, is_spaced: bool) -> Callable[[str], bool]:
    if not is_spaced:
        return lambda word: not word.isascii()
    words = [phrase.lstrip("^").split() for phrase in phrases.split("|") if phrase.strip("^ ")]
    firsts = {re.escape(first.strip(",:!*")) + (r"(?!\w)" if rest else "") for first, *rest in words}
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(firsts))})" if firsts else "(?!)", re.IGNORECASE)
    return lru_cache(maxsize=_MOST_WORDS)(lambda word: pattern.search(word) is not None)


def framings_of(answer: str, spoken: Language) -> Sequence[Framing]:
    """The phrases to look for in an answer in this language."""
    codes = LANGUAGES if len(answer) < _SHORT else dict.fromkeys((spoken.code, "en"))
    return [_framing(code) for code in codes]


@cache
def _framing(code: str) -> Framing:
    return Framing(code, words_of(code) if code in LANGUAGES else {})


def head_of_source(text: str) -> re.Match[str] | None:
    """The beginning of a text that names a source: "Source: ", "see "."""
    head, may_be_head = _source_head()
    return head.match(text) if any(map(may_be_head, text[:_REACH].split()[:_FIRST])) or not text.isascii() else None


@cache
def _source_head() -> tuple[re.Pattern[str], Callable[[str], bool]]:
    heads = _any(*(words_of(code)["citing"] for code in LANGUAGES))
    labels = _any(*(words_of(code).get("citing_labels", "") for code in LANGUAGES))
    headed = rf"(?:{heads})s?\b[*_]{{0,3}}(?:\s?[:：]|\.?\s(?=\S)|[*_\s]*$)|(?:{labels})s?[*_]{{0,3}}\s?[:：]"
    phrases = "|".join(f"{words_of(code)['citing']}|{words_of(code).get('citing_labels', '')}" for code in LANGUAGES)
    return re.compile(rf"{_EDGES}\W{{0,4}}(?:{headed})", re.IGNORECASE), _known(phrases, is_spaced=True)


@cache
def _source_noun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_nouns(*(words_of(code)['sources'] for code in LANGUAGES))})\b", re.IGNORECASE)
