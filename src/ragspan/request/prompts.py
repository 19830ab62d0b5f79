"""Which calls of models stand behind an answer, and where the request's documents stand in their prompts.

Behind an answer stand the call whose words the caller got, and earlier calls whose words stand in such a call's prompt: partial
answers, notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it
writes only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, islice

from ragspan.matching import LiteralPlaces, Match, PromptTexts, words_of
from ragspan.request.answering import is_one_word, is_verdict, words_said_by
from ragspan.request.contents import Document, PayloadMessage, normalise_spaces
from ragspan.request.short_texts import is_a_document, is_a_draft, places_in_lines
from ragspan.request.templates import FilledTexts
from ragspan.request.tree import ModelStep, SeenDocument

MAX_MODELS = 1000
SHORT = 24
"""Characters: a longer document is looked for wherever it may be."""
_MAX_COMPARED = 20_000
"""Characters of a message that are compared."""
_MAX_SAID = 50_000
_MAX_FIELDS = 1000
_MAX_ENTRIES = 50
_MIN_WORDS = 8
_MIN_SAID = 5
_MOST = 0.8
_MIN_SENTENCE = 3
_NEAR = 120
_sentence_end = re.compile(r"(?<=[.!?。！？])\s*")  # noqa: RUF001  Chinese and Japanese sentences end in these
_list_mark = re.compile(r"\s*(?:[-*•>\"'\[{]|\d+[.):])*\s*$")


class Turn(enum.Enum):
    """The turn that a part of a prompt belongs to."""

    THIS = enum.auto()
    """The turn of the answer: any document in it counts."""
    EARLIER = enum.auto()
    """History: a document in it counts if this request found it, since programs put documents before the history, too."""
    QUOTED = enum.auto()
    """An assistant's message of an earlier turn that no model of this request said: a document counts if it stands there whole."""
    SPOKEN = enum.auto()
    """A model's words, which hold no documents even if they quote some."""


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A document in a prompt."""

    entry: SeenDocument
    match: Match
    wanted: str
    """What was looked for: the text of the document, or one beside it."""


@dataclass(kw_only=True, slots=True, eq=False)
class AnswerPrompts:
    """The prompts behind an answer."""

    calls: Sequence[ModelStep]
    """In order of time; those of the answer's parts in the order of the parts."""
    texts: PromptTexts
    parts: Mapping[int, tuple[PayloadMessage, Turn]]
    """By its number in `texts`, each part of these prompts in order, this turn's before earlier ones of a call."""
    placed: Sequence[PlacedDocument]
    """The documents that count, in prompt order."""
    held: Mapping[int, Sequence[Match]]
    """By the number of a part, what stands there of documents; also of those that do not count there, as history."""


def prompts_behind(
    documents: Sequence[SeenDocument],
    models: Sequence[ModelStep],
    answering: Sequence[ModelStep],
    queries: Iterable[str],
    question: str,
    filled: FilledTexts,
) -> AnswerPrompts:
    """The prompts behind an answer, with those of these documents that are in them.

    Args:
        documents: what may be in a prompt.
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
        question: the user's own words, which are not a document even if they quote one.
        filled: what prompt templates were filled with.
    """
    reading = _Reading(models[-MAX_MODELS:], answering, queries, question, filled)
    prompts = reading.placed([*documents, *_windows(documents)])
    if prompts.placed or not prompts.texts.is_complete:
        larger = {id(each.entry.document.metadata) for each in prompts.placed if each.entry.is_beside}
        prompts.placed = [
            each
            for each in prompts.placed
            if each.entry.is_beside
            or id(each.entry.document.metadata) not in larger  # a small text of which a larger one is there
        ]
        return prompts
    beside = _texts_beside(documents)
    if beside and (found := reading.placed(beside)).placed:
        return found
    return reading.with_metadata_values(prompts, documents)


# Texts in the metadata of documents that may stand in a prompt in their place


def _windows(documents: Sequence[SeenDocument]) -> list[SeenDocument]:
    """Texts that contain a document's own: in its metadata the sentences around it, the page that it is of; what a framework writes."""
    found = (
        _beside(entry, text)
        for entry in documents
        for text in (entry.document.written, *islice(entry.document.metadata.values(), _MAX_ENTRIES))
        if type(text) is str and len(text) > len(entry.text) > 0 and entry.text.strip() in text
    )
    return list(islice(found, _MAX_FIELDS))


def _texts_beside(documents: Sequence[SeenDocument]) -> list[SeenDocument]:
    """What documents hold beside their own text, as documents: an index of summaries or questions has the passages there.

    A text that several have says something of their source.
    """
    values = (
        (text, entry)
        for entry in documents
        for text in islice(entry.document.metadata.values(), _MAX_ENTRIES)
        if type(text) is str and len(text[:500].split()) >= _MIN_WORDS
    )
    owners: dict[str, list[SeenDocument]] = {}
    for text, entry in islice(values, _MAX_FIELDS):
        owners.setdefault(text, []).append(entry)
    return [_beside(own[0], text) for text, own in owners.items() if len(own) == 1]


def _beside(entry: SeenDocument, text: str) -> SeenDocument:
    document = Document(text, entry.document.id, entry.document.metadata)
    return SeenDocument(document, entry.rank, entry.score, entry.from_history, is_beside=True)


class _Reading:
    """Reads the prompts of a request's models."""

    def __init__(
        self,
        models: Sequence[ModelStep],
        answering: Sequence[ModelStep],
        queries: Iterable[str],
        question: str,
        filled: FilledTexts,
    ) -> None:
        self._models, self._answering, self._question, self._filled = models, answering, question, filled
        self._others = list(filterfalse(set(answering).__contains__, models))
        self._queries = frozenset(map(normalise_spaces, queries))
        self._numbers: dict[tuple[bool, str], int] = {}
        self._parts_of: dict[int, dict[int, None]] = {}
        self._parts: dict[int, tuple[PayloadMessage, Turn]] = {}
        said = {_squeezed(call.said) for call in models}
        was_said = functools.cache(lambda text: _squeezed(text) in said)  # an agent's prompts repeat their parts
        for call in dict.fromkeys((*answering, *models)):
            own = self._parts_of[id(call)] = {}
            for part, turn in zip(call.prompt, _turns_of(call.prompt, was_said), strict=True):
                number = self._numbers.setdefault((part.role == "ai", part.text), len(self._numbers))
                own[number] = None
                self._parts.setdefault(number, (part, turn))  # the first prompt is that of the answer, and decides
        self._said = {id(call): self._said_by(call) for call in models}
        brief = [call for call in models if call not in answering and is_one_word(call.said)]
        self._brief = brief if len(brief) == 1 else []  # several grade or choose

    def _said_by(self, call: ModelStep) -> list[str]:
        """What a model said, without grades and queries."""
        return [
            text for text in words_said_by(call) if normalise_spaces(text) not in self._queries and not is_verdict(text)
        ]

    # Documents

    def placed(self, documents: Sequence[SeenDocument]) -> AnswerPrompts:
        """The prompts behind the answer, with those of these documents that are in them."""
        texts = [text for _, text in self._numbers]
        has_history = any(turn is Turn.EARLIER for _, turn in self._parts.values()) and any(
            entry.from_history for entry in documents
        )
        is_alone = not has_history and not any(map(self._candidates, self._answering))
        entries: dict[str, SeenDocument] = {}
        if is_alone:
            texts = texts[: len({number for call in self._answering for number in self._parts_of[id(call)]})]
        if is_alone and len(self._answering) == 1:
            call = self._answering[0]
            for entry in documents:
                entries.setdefault(call.seen.get(entry, entry.text), entry)
        else:
            for entry in sorted(documents, key=lambda entry: entry.from_history):
                entries.setdefault(entry.text, entry)
            for call in (call for call in self._models if call.rewritten):
                for entry, text in call.seen.items():
                    if text is not entry.text:
                        entries.setdefault(text, entry)
        numbers = range(len(texts))
        prompts = PromptTexts(
            texts,
            apart=self._question,
            silent=[number for number in numbers if self._parts[number][1] is Turn.SPOKEN],
            quoting=[number for number in numbers if self._parts[number][1] is Turn.QUOTED],
        )
        held: dict[int, list[tuple[Match, str]]] = {}
        for text, own in zip(entries, prompts.find(list(entries)), strict=True):
            for match in own:
                held.setdefault(match.part, []).append((match, text))
        self._place_short(prompts, [text for text in entries if len(text) < SHORT], held)
        calls = list(self._answering) if is_alone else self._calls_behind(prompts)
        parts = {number: self._parts[number] for call in calls for number in self._in_order(call)}
        return AnswerPrompts(
            calls=calls,
            texts=prompts,
            parts=parts,
            placed=self._counting(entries, held, parts),
            held={number: [match for match, _ in own] for number, own in held.items()},
        )

    def _in_order(self, call: ModelStep) -> list[int]:
        """The numbers of a prompt's parts: a document that stands in this turn and an earlier one has its place in this."""
        return sorted(self._parts_of[id(call)], key=lambda number: self._parts[number][1] is Turn.EARLIER)

    def _place_short(
        self, prompts: PromptTexts, short: Sequence[str], held: dict[int, list[tuple[Match, str]]]
    ) -> None:
        """Place short documents whose words stand in one line with other marks between, beside other documents."""
        known = {text for own in held.values() for _, text in own}
        missing = [text for text in short if text not in known and len(text.split()) > 1][:_MAX_FIELDS]
        for number, part in enumerate(prompts.parts) if missing else ():
            if number in prompts.silent or len(part) > _MAX_SAID:
                continue
            found = [(text, place) for text in missing if (place := places_in_lines(text, part)) is not None]
            if len(found) + len(held.get(number, ())) < 2:  # noqa: PLR2004  one alone may be an instruction
                continue
            for text, (start, end) in found:
                if prompts.is_free(number, start, end):
                    prompts.claim(number, start, end, 1)
                    held.setdefault(number, []).append((Match(number, start, end, whole=True, text=text), text))

    def _counting(
        self,
        entries: Mapping[str, SeenDocument],
        held: Mapping[int, Sequence[tuple[Match, str]]],
        parts: Mapping[int, tuple[PayloadMessage, Turn]],
    ) -> list[PlacedDocument]:
        """The documents that count, by what stands of these texts in the parts of the prompts behind an answer."""
        short = {word for text in entries if len(text) < SHORT for word in words_of(text)}
        found: dict[str, PlacedDocument] = {}
        others = any(turn is not Turn.QUOTED and held.get(number) for number, (_, turn) in parts.items())
        for number, (message, turn) in parts.items():
            for match, text in sorted(held.get(number, ()), key=lambda pair: pair[0].start):
                entry, known = entries[text], found.get(text)
                is_of_earlier = entry.from_history and turn is not Turn.THIS
                if turn is Turn.QUOTED and others:
                    continue
                if is_of_earlier or (known is not None and known.match.whole):
                    continue
                if len(text) < SHORT and not is_a_document(text, message.text, match, self._filled, short):
                    continue
                if known is None or match.whole or len(match.text) > len(known.match.text):
                    found[text] = PlacedDocument(entry, match, text)
        return list(found.values())

    def with_metadata_values(self, prompts: AnswerPrompts, documents: Sequence[SeenDocument]) -> AnswerPrompts:
        """The prompts with documents of which only several values of the metadata stand there, close to each other."""
        values: dict[str, list[SeenDocument]] = {}
        for entry in documents[:_MAX_FIELDS]:
            for value in list(entry.document.metadata.values())[:_MAX_ENTRIES]:
                text = str(value).strip() if type(value) in {str, int, float} else ""
                if text and (entry.document.text != text or len(text) >= SHORT):
                    values.setdefault(text, []).append(entry)
        placed: dict[int, PlacedDocument] = {}
        for number, (_, turn) in prompts.parts.items():
            part = prompts.texts.parts[number]
            if turn is not Turn.THIS or len(part) > _MAX_SAID:
                continue
            for entry in documents[:_MAX_FIELDS]:
                own = [text for text, owners in values.items() if any(each is entry for each in owners)]
                sure = [text for text in own if len(values[text]) == 1]
                span = _span_of_values(part, own, sure) if sure and id(entry) not in placed else None
                if span is not None and prompts.texts.is_free(number, *span):
                    match = Match(number, *span, whole=True, text=part[slice(*span)])
                    prompts.texts.claim(number, *span, 1)
                    placed[id(entry)] = PlacedDocument(entry, match, match.text)
                    prompts.held = {**prompts.held, number: [*prompts.held.get(number, ()), match]}
        prompts.placed = sorted(
            placed.values(), key=lambda one: (list(prompts.parts).index(one.match.part), one.match.start)
        )
        return prompts

    # Calls behind the answer

    def _candidates(self, later: ModelStep) -> list[ModelStep]:
        """The calls that may stand behind another one and add anything: an agent's call repeats all earlier ones."""
        return [call for call in self._others if self._is_candidate(call, later)]

    def _is_candidate(self, call: ModelStep, later: ModelStep) -> bool:
        has_ended = not call.beside_search and call.error is None and 0 < call.ended_ns <= later.started_ns
        is_heard = self._said[id(call)] or call in self._brief
        return has_ended and bool(is_heard) and not self._parts_of[id(call)].keys() <= self._parts_of[id(later)].keys()

    def _calls_behind(self, prompts: PromptTexts) -> list[ModelStep]:
        """The calls behind the answer, in order of time."""
        speakers = self._speakers(prompts)
        began = min((call.started_ns for call in self._answering), default=0)
        order = {id(call): (began, index) for index, call in enumerate(self._answering)}
        waiting, behind = list(self._answering), []
        known = set(map(id, waiting))
        while waiting:
            current = waiting.pop()
            behind.append(current)
            parts = self._parts_of[id(current)]
            near = {id(call): call for number in parts for call in speakers.get(number, ())}
            near |= {id(call): call for call in self._brief if self._is_drafted(call, parts)}
            for call in near.values():
                if id(call) not in known and self._is_candidate(call, current):
                    known.add(id(call))
                    waiting.append(call)
        return sorted(behind, key=lambda call: order.get(id(call), (call.started_ns, 0)))

    def _is_drafted(self, call: ModelStep, parts: Iterable[int]) -> bool:
        """Whether one of these parts hands on the single word that a call said."""
        texts = [self._parts[number] for number in parts]
        return any(is_a_draft(call.said, part.text, self._filled) for part, turn in texts if turn is not Turn.SPOKEN)

    def _speakers(self, prompts: PromptTexts) -> Mapping[int, list[ModelStep]]:
        """By the number of a part, the calls whose words stand in it, whole, a sentence or a run of them, outside of documents."""
        speakers: dict[int, list[ModelStep]] = {}
        places = LiteralPlaces(prompts.parts, sum(map(len, self._said.values())))
        results = {
            number: f" {' '.join(words_of(part.text))} "
            for number, (part, _) in self._parts.items()
            if part.role == "tool" and number < len(prompts.parts) and len(part.text) <= _MAX_COMPARED
        }
        most = max(1000, 2_000_000 // max(1, len(self._models)))
        for call in self._models:
            numbers: set[int] = set()
            for text in self._said[id(call)]:
                numbers |= _parts_that_quote(text[:most], prompts, places)
                said = f" {' '.join(words_of(text[:most]))} " if results else ""
                numbers |= {number for number, result in results.items() if len(result.split()) > 1 and result in said}
            for number in numbers:
                speakers.setdefault(number, []).append(call)
        if not places.is_complete or prompts.index.work < 0:
            prompts.is_complete = False
        return speakers


def _parts_that_quote(text: str, prompts: PromptTexts, places: LiteralPlaces) -> set[int]:
    """The parts that hold what a model said, outside of documents; one word takes a line of its own."""
    wanted, words = text.strip(), words_of(text)
    lines: set[int] = set()
    free: set[int] = set()
    in_documents: set[int] = set()
    for number, start in places.of(wanted) if wanted else ():
        end = start + len(wanted)
        if number not in prompts.silent and not prompts.is_free(number, start, end):
            in_documents.add(number)
        elif stands_as_line(prompts.parts[number], start, end):
            lines.add(number)
        else:
            free.add(number)
    if len(words) <= 1:
        return lines - prompts.silent
    if not (lines or free):
        index = prompts.index
        sentences = [own for each in _sentence_end.split(wanted) if len(own := words_of(each)) >= _MIN_SENTENCE]
        for own in (words, *(sentences if len(sentences) > 1 else ())):
            free |= {index.part_of(place) for place in index.places(own) if index.is_free(place, len(own))}
        enough = min(_MIN_WORDS, max(_MIN_SAID, _MOST * len(words)))
        free |= {part for part, runs in index.runs(words).items() if sum(run.length for run in runs) >= enough}
    return lines | (free - in_documents - prompts.silent)


def stands_as_line(text: str, start: int, end: int) -> bool:
    """Whether what stands in this range is a line, an item of a list or a field of its own."""
    low = max(text.rfind("\n", 0, start) + 1, start - _NEAR)
    after = text.find("\n", end, end + _NEAR)
    rest = text[end : after if after >= 0 else end + _NEAR]
    return _list_mark.fullmatch(text[low:start]) is not None and not any(map(str.isalnum, rest))


def _span_of_values(part: str, values: Sequence[str], sure: Sequence[str]) -> tuple[int, int] | None:
    """Where several values stand close to each other, around one that no other document has; or one that is a line of its own."""
    for text in sorted(sure, key=len, reverse=True):
        start = _place_apart(part, text)
        if start < 0:
            continue
        low, high = start, start + len(text)
        count = 1
        for other in values:
            near = part[max(0, low - _NEAR) : high + _NEAR]
            place = -1 if other == text else _place_apart(near, other)
            if place >= 0:
                place += max(0, low - _NEAR)
                low, high, count = min(low, place), max(high, place + len(other)), count + 1
        if count > 1 or (len(text.split()) > 1 and len(text) >= _MIN_WORDS and stands_as_line(part, low, high)):
            return low, high
    return None


def _place_apart(text: str, wanted: str) -> int:
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text)
    return -1 if found is None else found.start()


def _turns_of(parts: Sequence[PayloadMessage], was_said: Callable[[str], bool]) -> list[Turn]:
    """The turns of a prompt's parts.

    An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
    assistant's messages that no model gave are of the program's making, and may hold documents; so is one right after the message
    that ends a turn.
    """
    people = [index for index, part in enumerate(parts) if part.role == "human"]
    made = {index for index, part in enumerate(parts) if part.role == "ai" and not was_said(part.text)}
    ends = (index for index in made if people and people[0] < index < people[-1] and parts[index - 1].role != "ai")
    end = max(ends, default=-1)

    def turn(index: int, role: str) -> Turn:
        if role == "ai":
            return Turn.SPOKEN if index not in made else Turn.THIS if index > end else Turn.QUOTED
        return Turn.EARLIER if index < end and role != "system" else Turn.THIS

    return [turn(index, part.role) for index, part in enumerate(parts)]


def _squeezed(text: str) -> str:
    """A text without white space, which differs between a reply and the message made of it."""
    return "".join(text[:_MAX_COMPARED].split())
