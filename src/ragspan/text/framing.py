"""The phrases with which assistants frame what they say: what names the source, what is only polite.

Names of sources are known in all languages at once, because an answer may cite in another language than its own. Phrases are those
of the answer's language and of English, in which most templates are written; where the answer does not show its language, of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from ragspan.text.languages import NO_LETTERS, WITH_WORDS, Language, language
from ragspan.text.vocabulary import FUNCTION_WORDS, LANGUAGES, word_set
from ragspan.turns import give_turn, with_turns

_WORD = r"(?:[^\s,.;:!?()\[\]]{1,40}(?:\.\d{1,3}){0,3})"
_NO_SOURCE = r"(?!(?:a\s+result|terms\s+of|(?:the\s+)?case\s+of)\b)"
_EDGES = r"[\s>*_#\"'\u2022-]{0,8}"
_COLON, _COMMA = ":\uff1a", ",\uff0c\u3001"
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)])\s|\s{0,8}[\"'«]")
_REPLY = re.compile(
    r"\W{0,3}(?:yes|no|ja|nein|oui|non|sí|sim|não|nee|tak|nie|да|нет|evet|hayır)[,.!:]\s+", re.IGNORECASE
)
_MOST_FRAMES, _MOST_POLITE, _REACH = 3, 25, 160
"""Phrases at the beginning of a sentence; words of one that is only polite; characters of a line among which it names its source."""
_NAMED_BESIDE = word_set("and or of the a an to for in by & policy handbook guide manual report act code")


class Framing:
    """The phrases of one language."""

    def __init__(self, code: str) -> None:
        words: Mapping[str, Any] = LANGUAGES[code]
        is_spaced = code not in {"ja", "zh"}
        self._negations = language(code).negations
        polite = [phrase for phrase in words["courtesies"].split("|") if phrase]
        first = _gapped(phrase[1:] for phrase in polite if phrase[0] == "^")
        others = _gapped(phrase for phrase in polite if phrase[0] != "^")
        edge = r"(?<!\w)" if is_spaced else ""
        self._courtesy = re.compile(rf"\W{{0,9}}(?:{first})|(?:.*?{edge})(?:{others})", re.DOTALL)
        greets = _any(words["interjections"])
        self._greeting = re.compile(rf"\W{{0,9}}(?:{greets})(?:\W{{1,5}}(?:{greets})){{0,2}}\W{{0,9}}$", re.IGNORECASE)
        openings = [*_phrases(words, is_spaced=is_spaced), *(_sourced(words) if words.get("per") else ())]
        self._opening = re.compile(rf"{_EDGES}(?:{'|'.join(openings)})", re.IGNORECASE)
        inside = rf"\s*,?\s+(?:{_any(words.get('per', ''))})\s+(?:{_WORD}\s+){{0,5}}?(?:\w')?(?:{_nouns(words['sources'])})\b(?:\s+{_WORD}){{0,2}}(?=\s*(?:[,.;!?)]|$))"
        self.inside = re.compile(inside, re.IGNORECASE)  # ", according to the manual,"
        self.leading = [f" {phrase} " for phrase in words.get("per", "").split("|") if phrase]  # how those begin
        names = ("framing", "interjections", "self", "presenting", "courtesies", "sources")
        told = (phrase.translate(NO_LETTERS).split() for name in names for phrase in words.get(name, "").split("|"))
        # Of each phrase the word that is the least common.
        signs = {max(said, key=lambda word: (word not in FUNCTION_WORDS, len(word))) for said in told if said}
        self._signs = signs.union(f"{sign}s" for sign in signs if len(sign) > 2) if code == "en" else None  # noqa: PLR2004  "I"

    def may_frame(self, lowered: str) -> bool:
        """Whether a text in small letters may have one of the phrases; quick."""
        give_turn()
        return self._signs is None or not self._signs.isdisjoint(lowered.translate(NO_LETTERS).split())

    def is_courtesy(self, sentence: str) -> bool:
        """Whether a sentence is only polite; a long one, or one with a number, is not."""
        give_turn()
        words = sentence.lower().split()
        is_short = len(words) <= _MOST_POLITE and not any(map(str.isdigit, sentence))
        return bool(self._greeting.match(sentence) or (is_short and self._courtesy.match(" ".join(words))))

    def opening(self, sentence: str, at: int) -> re.Match[str] | None:
        """The phrase that names the source at a place of a sentence, unless it denies something."""
        give_turn()
        match = self._opening.match(sentence, at)
        words = match[0].lower().replace(",", " ").split() if match else ()
        return None if any(word in self._negations or word.endswith("n't") for word in words) else match


_framing = cache(Framing)


@cache
def framings_in(spoken: Language | None) -> Sequence[Framing]:
    """The phrases to look for in an answer in this language."""
    codes = WITH_WORDS if spoken is None else dict.fromkeys((spoken.code, "en"))
    return [_framing(code) for code in with_turns(codes) if code in WITH_WORDS]


def states_nothing_in(sentence: str, spoken: Iterable[Framing]) -> bool:
    """Whether a sentence is only polite, or the assistant's own question: not one that it lists or quotes."""
    asks = sentence.rstrip(")*_ ").endswith(("?", "\uff1f", "\u061f"))
    if asks and not _ITEM.match(sentence) and not sentence.count('"') % 2:
        return True
    return any(framing.is_courtesy(sentence) for framing in spoken)


def framed_places(sentence: str, spoken: Sequence[Framing]) -> Iterator[tuple[int, int]]:
    """Where a sentence names its source in place of a fact: at its beginning, and inside it."""
    reply = _REPLY.match(sentence)
    at = reply.end() if reply else 0
    for _ in range(_MOST_FRAMES):
        match = next(filter(None, (framing.opening(sentence, at) for framing in spoken)), None)
        if match is None:
            break
        yield match.span()
        at = match.end()
    lowered = sentence.lower()
    for framing in (one for one in spoken if any(map(lowered.__contains__, one.leading))):
        for match in framing.inside.finditer(sentence, at):
            yield match.span()
            at = match.end()


def names_source(text: str, *, dated: bool) -> bool:
    """Whether a few words are the name of a source: "Policy Handbook", "document 3", with a year or without."""
    if not _source_noun().search(text):
        return False
    words = text.split()
    named = all(word[0].isupper() or word.lower() in _NAMED_BESIDE or word[0].isdigit() for word in words)
    nouns = [_source_noun().fullmatch(word.strip(",:")) is not None for word in words]
    is_short = len(words) <= 2 and (nouns[0] or nouns[-1])  # noqa: PLR2004
    return dated or named or is_short or (words[0] in {"from", "in", "via", "per", "see"} and any(nouns))


def head_of_source(text: str) -> re.Match[str] | None:
    """The beginning of a text that names a source: "Source: ", "see "."""
    return _source_head().match(text, 0, _REACH)


def _phrases(words: Mapping[str, Any], *, is_spaced: bool) -> Iterator[str]:
    """Whole phrases, after which a comma may be a colon, and words that only greet or agree before what follows."""
    phrases, ends = words["framing"].split("|"), _COLON + _COMMA
    ended = "|".join(phrase.rstrip(f" {ends}") for phrase in phrases if phrase[-1] in ends)
    open_ended = "|".join(phrase for phrase in phrases if phrase[-1] not in ends)
    yield rf"(?:{_any(ended)})(?:\s*[{ends}]|\s+-+(?=\s))\s*"
    if is_spaced and open_ended:
        yield rf"(?:{_any(open_ended)})(?!\w)\s*"
    yield rf"(?:{_any(words['interjections'])})\s*[!\uff01{_COMMA}]\s*"
    if words.get("self") and words.get("that"):
        yield rf"(?:{_any(words['self'])})\s+(?:{_WORD}\s+){{0,8}}?(?:{_any(words['that'])})(?:\s+|(?<='))"
    between = rf"(?:\s+{_WORD}){{0,12}}\s*" if is_spaced else r"[^\u3002\uff0c\uff1a\n]{0,15}"
    yield rf"(?:{_any(words['presenting'])}){between}[{_COLON}]\s*"


def _sourced(words: Mapping[str, Any]) -> Iterator[str]:
    noun = rf"(?:{_nouns(words['sources'])})\b(?:\.[a-z]{{2,5}}\b)?"
    source, that = rf"{_NO_SOURCE}(?:{_WORD}\s+){{0,5}}?(?:\w')?[\"']?{noun}[\"']?", f"(?:{_any(words['that'])})"
    told = rf"(?:(?:{_WORD}\s+){{0,5}}?{that}\s+)?"
    yield rf"(?:{_any(words['per'])})\s+{source}(?:(?:\s+{_WORD}){{0,5}}\s*[{_COMMA}{_COLON}]\s*{told}|\s+)"
    yield rf"(?:{_any(words['within'])})\s+{source}(?:\s+{_WORD}){{0,4}}\s*[{_COMMA}{_COLON}]\s*{told}"
    yield rf"{source}\s+(?:{_WORD},?\s+){{1,4}}?{that}(?:\s+|(?<='))"
    yield rf"{source}\s+(?:{_WORD}\s+){{0,2}}{_WORD}:\s+"


def _nouns(words: str) -> str:
    """Words for sources: of those that end in "*", whatever follows; else an "s" may."""
    some = words.split("|")
    found = {rf"{re.escape(word[:-1])}\w{{0,12}}" if word.endswith("*") else rf"{re.escape(word)}s?" for word in some}
    return "|".join(sorted(found, key=len, reverse=True))


def _gapped(phrases: Iterable[str]) -> str:
    """An expression for any of some phrases, of which `…` means some words; matches nothing where there is none."""
    return "|".join(r"[^.]{0,20}?".join(map(re.escape, phrase.split(" … "))) for phrase in phrases) or "(?!)"


def _any(*texts: str) -> str:
    phrases = {phrase for text in texts for phrase in text.split("|") if phrase}
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in sorted(phrases, key=len, reverse=True))


@cache
def _source_head() -> re.Pattern[str]:
    heads, labels = (
        _any(*(LANGUAGES[code].get(name, "") for code in WITH_WORDS)) for name in ("citing", "citing_labels")
    )
    named = rf"(?:{heads})s?\b[*_]{{0,3}}(?:\s?[{_COLON}]|\.?\s(?=\S)|[*_\s]*$)|(?:{labels})s?[*_]{{0,3}}\s?[{_COLON}]"
    return re.compile(rf"{_EDGES}\W{{0,4}}(?:{named})", re.IGNORECASE)


@cache
def _source_noun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_nouns('|'.join(LANGUAGES[code]['sources'] for code in WITH_WORDS))})\b", re.IGNORECASE)
