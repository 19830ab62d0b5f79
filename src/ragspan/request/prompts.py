"""Which calls of models an answer comes from, and where the request's documents stand in their prompts.

An answer comes from the call whose words the caller got, and from earlier calls whose words stand in such a call's prompt: partial
answers, notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it
writes only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ragspan.matching import Match, PromptTexts, Span, WordIndex, has_words, occurrences, words_of
from ragspan.request.contents import MAX_FIELDS, Document, PayloadMessage, json_fields, normalise_spaces
from ragspan.request.documents import SeenDocuments
from ragspan.request.steps import ModelStep, SeenDocument

_SHORT = 24  # characters of a reply that may be one word, and of a document that a value of its metadata may equal
_MAX_MODELS = 1000
_MAX_LENGTH = 50_000
_MIN_WORDS = 8
_MOST = 0.8
_NEAR = 120
_MAX_COMPARED = 20_000  # characters of a message that are compared
_MAX_SAID_BY_ALL = 1_000_000  # characters of what models said that are compared with the answer
_MIN_LIKENESS = 0.5
_SHARED = 8  # words in a row that a response has from a model
_handed_on = re.compile(r"[:=][ \t]*[\"'“«*_`]{0,3}$")
_ended = re.compile(r"\W{0,3}(?:[.;]\s|\n|$)")
_list_mark = re.compile(r"\s*(?:[-*•>\"'\[{]|\d+[.):])*\s*$")


class Turn(enum.Enum):
    """The turn that a part of a prompt belongs to."""

    THIS = enum.auto()  # the turn of the answer: any document in it counts
    EARLIER = enum.auto()
    """History: a document in it counts if this request found it, since programs put documents before the history, too."""
    QUOTED = enum.auto()
    """An assistant's message of an earlier turn that no model of this request said: a document counts if it stands there whole."""
    SPOKEN = enum.auto()  # a model's words, which hold no documents even if they quote some


_THIS, _EARLIER, _QUOTED, _SPOKEN = Turn  # members are slow to look up


class PlacedDocument(NamedTuple):
    entry: SeenDocument
    match: Match


@dataclass(kw_only=True, slots=True, eq=False)
class AnswerPrompts:
    calls: Sequence[ModelStep]  # earlier ones in order of time, then those of the answer's parts
    texts: PromptTexts
    parts: Mapping[int, tuple[PayloadMessage, Turn]]
    """By its number in `texts`, each part of these prompts in order, this turn's before earlier ones of a call."""
    placed: Sequence[PlacedDocument]  # the documents that count, in prompt order
    held: dict[int, list[Match]]
    """By the number of a part, what stands there of documents; also of those that do not count there, as history."""


def answer_prompts(
    seen: SeenDocuments, question: str, models: Sequence[ModelStep], answering: Sequence[ModelStep]
) -> AnswerPrompts:
    """The prompts that an answer comes from, with those of the documents that are in them.

    Metadata of a document may stand there in its place: a text that contains the document's (the sentences around it, the page that
    it is of, what a framework writes of it); where nothing else was found, other values (an index of summaries or questions has the
    passages there, a catalogue its prices).

    Args:
        seen: the documents that may be in a prompt, and what was searched with.
        question: the user's own words, which are not a document even if they quote one.
        models: the calls that the answer may come from.
        answering: those whose words the caller got.
    """
    documents = seen.all
    wider: list[SeenDocument] = []
    for entry in documents:
        for text in (entry.document.written, *entry.document.metadata.values()):
            is_wider = type(text) is str and len(text) > len(entry.text) > 0 and entry.text.strip() in text
            if is_wider or (text and text is entry.document.written is not entry.text):  # metadata alone, perhaps
                document = Document(text, entry.document.id, entry.document.metadata)
                wider.append(SeenDocument(document, entry.rank, entry.score, entry.from_history, is_beside=True))
    reader = _PromptReader(seen, question, models[-_MAX_MODELS:], answering)
    prompts = reader.prompts_with([*documents, *wider[:MAX_FIELDS]])
    if not prompts.placed and prompts.texts.is_complete:
        _place_metadata_values(prompts, documents[:MAX_FIELDS])
    elif larger := {id(one.entry.document.metadata) for one in prompts.placed if one.entry.is_beside}:
        prompts.placed = [
            one for one in prompts.placed if one.entry.is_beside or id(one.entry.document.metadata) not in larger
        ]
    return prompts


class _PromptReader:
    def __init__(
        self, seen: SeenDocuments, question: str, models: Sequence[ModelStep], answering: Sequence[ModelStep]
    ) -> None:
        self._seen, self._models, self._answering, self._question = seen, models, answering, question
        self._numbers: dict[tuple[bool, str], int] = {}
        self._parts_of: dict[ModelStep, list[int]] = {}
        """By a call, the numbers of its parts: a document in this turn and in an earlier one has its place in this."""
        self._parts: dict[int, tuple[PayloadMessage, Turn]] = {}
        for call in dict.fromkeys((*answering, *models)):
            own: dict[int, bool] = {}
            for part, turn in zip(call.prompt, self._turns_of(call.prompt), strict=True):
                number = self._numbers.setdefault((part.role == "ai", part.text), len(self._numbers))
                self._parts.setdefault(number, (part, turn))  # the first prompt is that of the answer, and decides
                own[number] = self._parts[number][1] is _EARLIER
            self._parts_of[call] = sorted(own, key=own.__getitem__)

    def _turns_of(self, parts: Sequence[PayloadMessage]) -> list[Turn]:
        """The turns of a prompt's parts.

        An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
        assistant's messages that no model gave are of the program's making, and may hold documents; so is one right after the
        message that ends a turn.
        """
        made = [index for index, part in enumerate(parts) if part.role == "ai" and not self._was_said(part.text)]
        people = [index for index, part in enumerate(parts) if part.role == "human"] if made else ()
        ends = (index for index in made if people and people[0] < index < people[-1] and parts[index - 1].role != "ai")
        end = max(ends, default=-1)
        turns = []
        for index, part in enumerate(parts):
            if part.role == "ai":
                turns.append(_SPOKEN if index not in made else _THIS if index > end else _QUOTED)
            else:
                turns.append(_EARLIER if index < end and part.role != "system" else _THIS)
        return turns

    @cached_property
    def _was_said(self) -> Callable[[str], bool]:
        """Whether a model of this request said a text; an agent's prompts repeat their parts."""
        said = {_squeezed(call.said) for call in self._models}
        return cache(lambda text: _squeezed(text) in said)

    @cached_property
    def _said(self) -> Mapping[ModelStep, list[str]]:
        """What each model said, without queries."""
        queries = frozenset(map(normalise_spaces, self._seen.queries))
        return {
            call: [text for text in call.texts_said if normalise_spaces(text) not in queries] for call in self._models
        }

    # Documents

    def prompts_with(self, documents: Sequence[SeenDocument]) -> AnswerPrompts:
        """The prompts that the answer comes from, with those of these documents that are in them."""
        entries: dict[str, SeenDocument] = {}
        for entry in sorted(documents, key=attrgetter("from_history")):
            entries.setdefault(entry.text, entry)
        known = {id(entry.document): entry for entry in documents}
        for document, text in (pair for call in self._models for pair in call.rewritten):
            if id(document) in known:  # the program changed it in place on the way
                entries.setdefault(text, known[id(document)])
        others = [call for call in self._models if call not in self._answering]
        is_alone = not any(self._is_candidate(call, later) for later in self._answering for call in others)
        calls = self._answering if is_alone else self._models
        last = max((number for call in calls for number in self._parts_of[call]), default=-1)
        texts = [text for _, text in islice(self._numbers, last + 1)]
        prompts = PromptTexts(
            texts,
            apart=self._question,
            silent=[number for number in range(len(texts)) if self._parts[number][1] is _SPOKEN],
            quoting=[number for number in range(len(texts)) if self._parts[number][1] is _QUOTED],
        )
        held: dict[int, list[tuple[Match, str]]] = {}
        for text, own in zip(entries, prompts.find(list(entries)), strict=True):
            for match in own:
                held.setdefault(match.part, []).append((match, text))
        calls = list(self._answering) if is_alone else self._calls_of_answer(prompts)
        parts = {number: self._parts[number] for call in calls for number in self._parts_of[call]}
        return AnswerPrompts(
            calls=calls,
            texts=prompts,
            parts=parts,
            placed=self._counting(entries, held, parts),
            held={number: [match for match, _ in own] for number, own in held.items()},
        )

    def _counting(
        self,
        entries: Mapping[str, SeenDocument],
        held: Mapping[int, Sequence[tuple[Match, str]]],
        parts: Mapping[int, tuple[PayloadMessage, Turn]],
    ) -> list[PlacedDocument]:
        """The documents that count, by what stands of these texts in the parts of the answer's prompts."""
        found: dict[str, PlacedDocument] = {}
        others = any(turn is not _QUOTED and held.get(number) for number, (_, turn) in parts.items())
        for number, (_, turn) in parts.items():
            for own, text in sorted(held.get(number, ()), key=lambda pair: pair[0].start):
                entry, known = entries[text], found.get(text)
                if (turn is _QUOTED and others) or (entry.from_history and turn is not _THIS):
                    continue
                before = None if known is None else known.match
                match = own if before is None or before.whole or own.whole else _put_together(text, before, own)
                if before is None or (not before.whole and (match.whole or len(match.text) > len(before.text))):
                    found[text] = PlacedDocument(entry, match)
        return list(found.values())

    # Calls

    def _is_candidate(self, call: ModelStep, later: ModelStep) -> bool:
        """Whether an answer may rest on this call, too, and it adds anything: an agent's call repeats all earlier ones."""
        if call.error is not None or not 0 < call.ended_ns <= later.started_ns:
            return False
        return bool(self._said[call]) and not set(self._parts_of[call]) <= set(self._parts_of[later])

    def _calls_of_answer(self, prompts: PromptTexts) -> list[ModelStep]:
        speakers: dict[int, list[ModelStep]] = {}  # by the number of a part, the calls whose words stand in it
        brief = {text for own in self._said.values() for text in own if len(words_of(text[:_SHORT])) == 1}
        most = max(1000, 2_000_000 // len(self._models))
        for call in self._models:
            numbers: set[int] = set()
            for text in self._said[call]:
                numbers |= _parts_that_quote(text[:most], prompts, is_draft=len(brief) == 1)
            if call.reply is not None and call.reply.calls:  # what an agent says on its way is not a draft
                numbers -= prompts.silent
            for number in numbers:
                speakers.setdefault(number, []).append(call)
        prompts.is_complete &= prompts.index.work >= 0
        found = list(self._answering)
        for current in found:
            near = dict.fromkeys(call for number in self._parts_of[current] for call in speakers.get(number, ()))
            found += [call for call in near if call not in found and self._is_candidate(call, current)]
        earlier = sorted(found[len(self._answering) :], key=lambda call: call.started_ns)
        return [*earlier, *self._answering]


def _parts_that_quote(text: str, prompts: PromptTexts, *, is_draft: bool) -> set[int]:
    """The parts that hold what a model said, outside of documents; one word takes a line of its own, or ends one after a colon."""
    wanted, words = text.strip(), words_of(text)
    found, in_documents = set[int](), set[int]()
    for number, start in prompts.places_of(wanted) if wanted else ():
        end, part = start + len(wanted), prompts.parts[number]
        if number not in prompts.silent and not prompts.is_free(number, start, end):
            in_documents.add(number)
        elif len(words) > 1 or stands_as_line(part, start, end):
            found.add(number)
        elif is_draft and _handed_on.search(part[max(0, start - _NEAR) : start]) and _ended.match(part, end):
            found.add(number)  # not one word of several, as grades and choices are
    if len(words) > 1 and not found:
        enough = min(_MIN_WORDS, _MOST * len(words))
        found = {part for part, runs in prompts.index.runs(words).items() if sum(run.length for run in runs) >= enough}
    return found - in_documents if len(words) > 1 else found - in_documents - prompts.silent


def _put_together(text: str, one: Match, other: Match) -> Match:
    """What two parts of prompts have of a text where one goes on as the other ends: a framework splits what is too long for one."""
    (low, first), (start, second) = sorted((text.find(each.text), each.text) for each in (one, other))
    if low < 0 or text[low + len(first) : start].strip():
        return other
    shown = text[low : max(low + len(first), start + len(second))]
    is_whole = shown.strip() == text.strip()
    return one._replace(whole=is_whole, text=text if is_whole else shown)


def _squeezed(text: str) -> str:
    """A text without what differs between a reply and the message made of it: white space, and JSON as Python writes it."""
    return "".join(text[:_MAX_COMPARED].replace('"', "'").split())


def stands_as_line(text: str, start: int, end: int) -> bool:
    """Whether what stands in this range is a line, an item of a list or a field of its own."""
    low = max(text.rfind("\n", 0, start) + 1, start - _NEAR)
    after = text.find("\n", end, end + _NEAR)
    rest = text[end : after if after >= 0 else end + _NEAR]
    return _list_mark.fullmatch(text[low:start]) is not None and not any(map(str.isalnum, rest))


def _place_metadata_values(prompts: AnswerPrompts, documents: Sequence[SeenDocument]) -> None:
    """Place documents of which only values of the metadata stand in the prompts.

    Several stand close to each other, one of which no other document has; or that one is a text, or a line of its own.
    """
    values = {
        entry: {
            text
            for value in entry.document.metadata.values()
            if type(value) in {str, int, float} and (text := str(value).strip())
            if entry.text != text or len(text) >= _SHORT
        }
        for entry in documents
    }
    owners = Counter(text for own in values.values() for text in own)
    placed: list[PlacedDocument] = []
    for number, (_, turn) in prompts.parts.items():
        part = prompts.texts.parts[number]
        if turn is not _THIS or len(part) > _MAX_LENGTH:
            continue
        spans = [(span, entry) for entry, own in values.items() if (span := span_of_values(part, own, owners))]
        for span, entry in sorted(spans, key=lambda pair: pair[0]):
            if prompts.texts.is_free(number, *span):
                match = Match(number, *span, whole=True, text=part[slice(*span)])
                prompts.texts.claim(number, 1, span)
                prompts.held.setdefault(number, []).append(match)
                placed.append(PlacedDocument(entry, match))
                del values[entry]
    prompts.placed = placed


def span_of_values(part: str, values: Iterable[str], owners: Mapping[str, int]) -> Span | None:
    """Where values of one document, or of one row, stand close to each other."""
    for text in sorted((text for text in values if owners[text] == 1), key=len, reverse=True):
        low = next(occurrences(part, text), -1)
        high, count = low + len(text), 1
        for other in values if low >= 0 else ():
            first = max(0, low - _NEAR)
            place = -1 if other == text else first + next(occurrences(part[first : high + _NEAR], other), -1 - first)
            if place >= 0:
                low, high, count = min(low, place), max(high, place + len(other)), count + 1
        is_text = low >= 0 and has_words(text, _MIN_WORDS)
        is_line = low >= 0 and has_words(text, 2) and len(text) >= _MIN_WORDS and stands_as_line(part, low, high)
        if count > 1 or is_text or is_line:
            return low, high
    return None


# The calls whose words the caller got


def answering_calls(models: Sequence[ModelStep], response: str | None) -> tuple[list[ModelStep], bool]:
    """The calls whose words the caller received, and whether the response is theirs, in part or reworded.

    If the words were changed on the way it is the likeliest call. No model said a sentence of the program's own.
    """
    response = (response or "").strip()
    said_by = {call: call.said.strip() for call in models}
    same = [call for call, text in said_by.items() if text == response] if response else []
    if same or not response or not models:
        return (same or list(models))[-1:], True  # as mostly
    if all(text in response and has_words(text, 2) for text in said_by.values()):
        return sorted(models, key=lambda call: response.find(said_by[call])), True  # put together from all of them
    answer = words_of(response)
    if not answer:
        return list(models)[-1:], True
    most = _MAX_SAID_BY_ALL // len(models)
    said = {call: [words_of(text[:most]) for text in call.texts_said] for call in models}
    objects = {call: words_of((call.reply.calls_text or "")[:most]) for call in models if call.reply is not None}
    is_said = _is_said(answer, [words for own in (*said.values(), objects.values()) for words in own if words])
    same = [call for call in models if answer in said[call] or answer == objects.get(call)]
    spoke = [call for call in models if said_by[call] and said[call][0]]
    if same or not spoke:
        return (same or list(models))[-1:], is_said
    fields, whole = json_fields(response), f" {' '.join(answer)} "
    quoted: list[tuple[int, int]] = []
    for place, call in enumerate(spoke):
        words = said[call][0]
        wanted = f" {' '.join(words)} "
        start = whole.find(wanted)
        is_part = start >= 0 or (len(words) > len(answer) and whole in wanted)
        if (is_part and len(words) > 1 and len(answer) > 1) or said_by[call] in fields:
            quoted.append((start, place))
    if quoted:
        return [spoke[place] for _, place in sorted(quoted)], is_said
    replied = [call for call in models if call.reply is not None] or spoke

    def likeness(call: ModelStep) -> float:
        own = Counter(word for words in said[call] for word in words)
        return 2 * (own & Counter(answer)).total() / (own.total() + len(answer))

    return [max(reversed(replied), key=likeness)], is_said


def _is_said(answer: Sequence[str], said: Sequence[Sequence[str]]) -> bool:
    whole, texts = f" {' '.join(answer)} ", [f" {' '.join(words)} " for words in said]
    if any(text in whole or whole in text for text in texts):
        return True
    wanted = Counter(answer)
    shared = [2 * (Counter(words) & wanted).total() - len(words) for words in said]
    return max(shared, default=-1) >= len(answer) * _MIN_LIKENESS or shares_words(answer, texts, _SHARED)


def shares_words(words: Sequence[str], texts: Sequence[str], least: int = 1) -> bool:
    """Whether one of these texts has so many of these words, in runs."""
    runs = WordIndex(texts).runs(words)
    return any(sum(run.length for run in own) >= least for own in runs.values())
