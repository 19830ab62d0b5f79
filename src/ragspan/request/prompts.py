"""Which calls of models stand behind an answer, and where the request's documents stand in their prompts.

Behind an answer stand the call whose words the caller got, and earlier calls whose words stand in such a call's prompt: partial
answers, notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it
writes only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

from ragspan.matching import Match, PromptTexts, Span, words_of
from ragspan.request.answering import is_verdict, words_said_by
from ragspan.request.contents import Document, PayloadMessage, normalise_spaces
from ragspan.request.short_texts import SHORT, place_short, stands_apart
from ragspan.request.templates import FilledTexts
from ragspan.request.tree import ModelStep, SeenDocument

_MAX_MODELS = 1000
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
_handed_on = re.compile(r"[:=][ \t]*[\"'“«*_`]{0,3}$")
_ended = re.compile(r"\W{0,3}(?:[.;]\s|\n|$)")
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
    held: dict[int, list[Match]]
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

    Metadata of a document may stand there in its place: a text that contains the document's (the sentences around it, the page that
    it is of, what a framework writes of it); where nothing else was found a text of its own (an index of summaries or questions has
    the passages there), unless several have it; or else several values close to each other.

    Args:
        documents: what may be in a prompt.
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
        question: the user's own words, which are not a document even if they quote one.
        filled: what prompt templates were filled with.
    """
    reading = _Reading(models[-_MAX_MODELS:], answering, queries, question, filled)
    wider: list[SeenDocument] = []
    others: dict[str, list[SeenDocument]] = {}
    for entry in documents:
        for text in (entry.document.written, *islice(entry.document.metadata.values(), _MAX_ENTRIES)):
            if type(text) is not str or len(wider) + len(others) > _MAX_FIELDS:
                continue
            if len(text) > len(entry.text) > 0 and entry.text.strip() in text:
                wider.append(_beside(entry, text))
            if text is not entry.document.written and len(text[:500].split(None, _MIN_WORDS)) >= _MIN_WORDS:
                others.setdefault(text, []).append(entry)
    prompts = reading.placed([*documents, *wider])
    if prompts.placed or not prompts.texts.is_complete:
        larger = {id(one.entry.document.metadata) for one in prompts.placed if one.entry.is_beside}
        prompts.placed = [
            one for one in prompts.placed if one.entry.is_beside or id(one.entry.document.metadata) not in larger
        ]
        return prompts
    beside = [_beside(own[0], text) for text, own in others.items() if len(own) == 1]
    if beside and (found := reading.placed(beside)).placed:
        return found
    _place_metadata_values(prompts, documents)
    return prompts


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
        self._others = [call for call in models if call not in answering]
        self._queries = frozenset(map(normalise_spaces, queries))
        self._numbers: dict[tuple[bool, str], int] = {}
        self._parts_of: dict[int, list[int]] = {}
        """By a call, the numbers of its parts: a document in this turn and in an earlier one has its place in this."""
        self._parts: dict[int, tuple[PayloadMessage, Turn]] = {}
        was_said = cache(lambda text: _squeezed(text) in self._all_said)  # an agent's prompts repeat their parts
        for call in dict.fromkeys((*answering, *models)):
            own: dict[int, bool] = {}
            for part, turn in zip(call.prompt, _turns_of(call.prompt, was_said), strict=True):
                number = self._numbers.setdefault((part.role == "ai", part.text), len(self._numbers))
                self._parts.setdefault(number, (part, turn))  # the first prompt is that of the answer, and decides
                own[number] = self._parts[number][1] is Turn.EARLIER
            self._parts_of[id(call)] = sorted(own, key=own.__getitem__)

    @cached_property
    def _all_said(self) -> set[str]:
        return {_squeezed(call.said) for call in self._models}

    @cached_property
    def _said(self) -> Mapping[int, list[str]]:
        """What each model said, without grades and queries."""
        return {
            id(call): [
                text
                for text in words_said_by(call)
                if normalise_spaces(text) not in self._queries and not is_verdict(text)
            ]
            for call in self._models
        }

    # Documents

    def placed(self, documents: Sequence[SeenDocument]) -> AnswerPrompts:
        """The prompts behind the answer, with those of these documents that are in them."""
        has_history = any(entry.from_history for entry in documents) and any(
            turn is Turn.EARLIER for _, turn in self._parts.values()
        )
        is_alone = not has_history and not any(
            self._is_candidate(call, later) for later in self._answering for call in self._others
        )
        entries = self._entries(documents, is_alone=is_alone)
        texts = [text for _, text in self._numbers]
        if is_alone:
            texts = texts[: len({number for call in self._answering for number in self._parts_of[id(call)]})]
        turns = [self._parts[number][1] for number in range(len(texts))]
        prompts = PromptTexts(
            texts,
            apart=self._question,
            silent=[number for number, turn in enumerate(turns) if turn is Turn.SPOKEN],
            quoting=[number for number, turn in enumerate(turns) if turn is Turn.QUOTED],
        )
        held: dict[int, list[tuple[Match, str]]] = {}
        for text, own in zip(entries, prompts.find(list(entries)), strict=True):
            for match in own:
                held.setdefault(match.part, []).append((match, text))
        short = [text for text in entries if len(text) < SHORT]
        if short:
            place_short(prompts, short, held)
        calls = list(self._answering) if is_alone else self._calls_behind(prompts)
        parts = {number: self._parts[number] for call in calls for number in self._parts_of[id(call)]}
        return AnswerPrompts(
            calls=calls,
            texts=prompts,
            parts=parts,
            placed=self._counting(entries, held, parts, {word for text in short for word in words_of(text)}),
            held={number: [match for match, _ in own] for number, own in held.items()},
        )

    def _entries(self, documents: Sequence[SeenDocument], *, is_alone: bool) -> dict[str, SeenDocument]:
        """The documents by their texts, as they were when models were given them: programs change them in place."""
        entries: dict[str, SeenDocument] = {}
        if is_alone and len(self._answering) == 1:
            for entry in documents:
                entries.setdefault(self._answering[0].seen.get(entry, entry.text), entry)
            return entries
        for entry in sorted(documents, key=lambda entry: entry.from_history):
            entries.setdefault(entry.text, entry)
        for call in (call for call in self._models if call.rewritten):
            for entry, text in call.seen.items():
                if text is not entry.text:
                    entries.setdefault(text, entry)
        return entries

    def _counting(
        self,
        entries: Mapping[str, SeenDocument],
        held: Mapping[int, Sequence[tuple[Match, str]]],
        parts: Mapping[int, tuple[PayloadMessage, Turn]],
        short: Collection[str],
    ) -> list[PlacedDocument]:
        """The documents that count, by what stands of these texts in the parts of the prompts behind an answer."""
        found: dict[str, PlacedDocument] = {}
        others = any(turn is not Turn.QUOTED and held.get(number) for number, (_, turn) in parts.items())
        for number, (message, turn) in parts.items():
            for match, text in sorted(held.get(number, ()), key=lambda pair: pair[0].start):
                entry, known = entries[text], found.get(text)
                if (turn is Turn.QUOTED and others) or (entry.from_history and turn is not Turn.THIS):
                    continue
                if known is not None and known.match.whole:
                    continue
                if len(text) < SHORT and not stands_apart(text, message.text, match, self._filled, short):
                    continue
                if known is None or match.whole or len(match.text) > len(known.match.text):
                    found[text] = PlacedDocument(entry, match)
        return list(found.values())

    # Calls behind the answer

    def _is_candidate(self, call: ModelStep, later: ModelStep) -> bool:
        """Whether a call may stand behind another one and adds anything: an agent's call repeats all earlier ones."""
        if call.beside_search or call.error is not None or not 0 < call.ended_ns <= later.started_ns:
            return False
        return bool(self._said[id(call)]) and not set(self._parts_of[id(call)]) <= set(self._parts_of[id(later)])

    def _calls_behind(self, prompts: PromptTexts) -> list[ModelStep]:
        """The calls behind the answer, in order of time."""
        speakers = self._speakers(prompts)
        began = min((call.started_ns for call in self._answering), default=0)
        order = {id(call): (began, index) for index, call in enumerate(self._answering)}
        behind, waiting = dict[int, ModelStep](), list(self._answering)
        while waiting:
            current = waiting.pop()
            behind[id(current)] = current
            near = {id(call): call for number in self._parts_of[id(current)] for call in speakers.get(number, ())}
            waiting += [
                call
                for key, call in near.items()
                if key not in behind and call not in waiting and self._is_candidate(call, current)
            ]
        return sorted(behind.values(), key=lambda call: order.get(id(call), (call.started_ns, 0)))

    def _speakers(self, prompts: PromptTexts) -> Mapping[int, list[ModelStep]]:
        """By the number of a part, the calls whose words stand in it, whole, a sentence or a run of them, outside of documents."""
        speakers: dict[int, list[ModelStep]] = {}
        results = {
            number: f" {' '.join(words)} "
            for number, (part, _) in self._parts.items()
            if part.role == "tool" and number < len(prompts.parts) and len(part.text) <= _MAX_COMPARED
            if len(words := words_of(part.text)) > 1
        }
        brief = {text for own in self._said.values() for text in own if len(words_of(text[:SHORT])) == 1}
        most = max(1000, 2_000_000 // max(1, len(self._models)))
        for call in self._models:
            numbers: set[int] = set()
            for text in self._said[id(call)]:
                numbers |= _parts_that_quote(text[:most], prompts, is_draft=len(brief) == 1)
                said = f" {' '.join(words_of(text[:most]))} " if results else ""
                numbers |= {number for number, result in results.items() if result in said}
            for number in numbers:
                speakers.setdefault(number, []).append(call)
        prompts.is_complete &= prompts.index.work >= 0
        return speakers


def _parts_that_quote(text: str, prompts: PromptTexts, *, is_draft: bool) -> set[int]:
    """The parts that hold what a model said, outside of documents; one word takes a line of its own, or ends one after a colon."""
    wanted, words = text.strip(), words_of(text)
    lines, free, in_documents = set[int](), set[int](), set[int]()
    for number, start in prompts.places_of(wanted) if wanted else ():
        end = start + len(wanted)
        if number not in prompts.silent and not prompts.is_free(number, start, end):
            in_documents.add(number)
        elif stands_as_line(part := prompts.parts[number], start, end):
            lines.add(number)
        elif is_draft and _handed_on.search(part[max(0, start - _NEAR) : start]) and _ended.match(part, end):
            lines.add(number)  # no word of several, as grades and choices are
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


def _turns_of(parts: Sequence[PayloadMessage], was_said: Callable[[str], bool]) -> list[Turn]:
    """The turns of a prompt's parts.

    An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
    assistant's messages that no model gave are of the program's making, and may hold documents; so is one right after the message
    that ends a turn.
    """
    made = [index for index, part in enumerate(parts) if part.role == "ai" and not was_said(part.text)]
    people = [index for index, part in enumerate(parts) if part.role == "human"] if made else ()
    ends = (index for index in made if people and people[0] < index < people[-1] and parts[index - 1].role != "ai")
    end = max(ends, default=-1)
    return [
        Turn.SPOKEN
        if part.role == "ai" and index not in made
        else (Turn.THIS if index > end else Turn.QUOTED)
        if part.role == "ai"
        else Turn.EARLIER
        if index < end and part.role != "system"
        else Turn.THIS
        for index, part in enumerate(parts)
    ]


def _squeezed(text: str) -> str:
    """A text without white space, which differs between a reply and the message made of it."""
    return "".join(text[:_MAX_COMPARED].split())


def stands_as_line(text: str, start: int, end: int) -> bool:
    """Whether what stands in this range is a line, an item of a list or a field of its own."""
    low = max(text.rfind("\n", 0, start) + 1, start - _NEAR)
    after = text.find("\n", end, end + _NEAR)
    rest = text[end : after if after >= 0 else end + _NEAR]
    return _list_mark.fullmatch(text[low:start]) is not None and not any(map(str.isalnum, rest))


# Values of metadata


def _place_metadata_values(prompts: AnswerPrompts, documents: Sequence[SeenDocument]) -> None:
    """Place documents of which only several values of the metadata stand in the prompts, close to each other."""
    values: dict[int, list[str]] = {}
    owners: dict[str, set[int]] = {}
    for entry in documents[:_MAX_FIELDS]:
        for value in islice(entry.document.metadata.values(), _MAX_ENTRIES):
            text = str(value).strip() if type(value) in {str, int, float} else ""
            if text and (entry.text != text or len(text) >= SHORT):
                values.setdefault(id(entry), []).append(text)
                owners.setdefault(text, set()).add(id(entry))
    placed: list[PlacedDocument] = []
    known: set[int] = set()
    for number, (_, turn) in prompts.parts.items():
        part = prompts.texts.parts[number]
        here: list[PlacedDocument] = []
        for entry in documents[:_MAX_FIELDS] if turn is Turn.THIS and len(part) <= _MAX_SAID else ():
            own = values.get(id(entry), ()) if id(entry) not in known else ()
            span = _span_of_values(part, own, [text for text in own if len(owners[text]) == 1])
            if span is not None and prompts.texts.is_free(number, *span):
                match = Match(number, *span, whole=True, text=part[slice(*span)])
                prompts.texts.claim(number, *span, 1)
                here.append(PlacedDocument(entry, match))
                known.add(id(entry))
                prompts.held.setdefault(number, []).append(match)
        placed += sorted(here, key=lambda one: one.match.start)
    prompts.placed = placed


def _span_of_values(part: str, values: Sequence[str], sure: Sequence[str]) -> Span | None:
    """Where several values stand close to each other, around one that no other document has; or one that is a line of its own."""
    for text in sorted(sure, key=len, reverse=True):
        start = _place_apart(part, text)
        if start < 0:
            continue
        low, high, count = start, start + len(text), 1
        for other in values:
            first = max(0, low - _NEAR)
            place = -1 if other == text else _place_apart(part[first : high + _NEAR], other)
            if place >= 0:
                low, high, count = min(low, first + place), max(high, first + place + len(other)), count + 1
        if count > 1 or (len(text.split()) > 1 and len(text) >= _MIN_WORDS and stands_as_line(part, low, high)):
            return low, high
    return None


def _place_apart(text: str, wanted: str) -> int:
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text)
    return -1 if found is None else found.start()
