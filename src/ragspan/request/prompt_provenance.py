"""Which calls of models stand behind an answer.

They are the call whose words the caller got, and earlier calls whose words stand in such a call's prompt: partial answers,
notes, drafts, the answer of another agent. What a model says only about a document (a grade, a choice) and what it writes
only to search with do not make its prompt one of these.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple

from ragspan.matching import Holders, Match, PromptTexts, PromptWords, Speech, words_of
from ragspan.request.answering import is_one_word, is_verdict, words_said_by
from ragspan.request.contents import PayloadMessage, normalise_spaces
from ragspan.request.metadata_texts import texts_beside, windows
from ragspan.request.short_texts import SHORT, Filled, is_a_document, is_a_draft
from ragspan.request.tree import ModelStep, SeenDocument


class Found(NamedTuple):
    """A document in a prompt."""

    entry: SeenDocument
    text: str
    """What the prompt has of it."""
    whole: bool
    """Nothing of it is missing."""
    wanted: str
    """What was looked for: the text of the document, or one beside it."""


MAX_MODELS = 1000
_MAX_COMPARED = 20_000
"""Characters of a message that are compared."""
_MAX_RESULT = 2000


@dataclass(kw_only=True, slots=True, eq=False)
class Behind:
    """The prompts behind an answer."""

    runs: Sequence[ModelStep]
    """The calls of models, in order of time; those of the answer's parts in the order of the parts."""
    texts: PromptTexts
    parts: Mapping[int, tuple[PayloadMessage, Turn]]
    """By its number in `texts`, each part of these prompts in order, this turn's before earlier ones of a call."""
    found: Sequence[Found]
    """The documents, in prompt order."""
    holding: Mapping[int, Sequence[Match]]
    """By the number of a part, what stands there of documents; also of those that do not count there, as history."""
    said: AbstractSet[int]
    """The numbers of tools' results that are what a model of this request said."""

    @property
    def is_complete(self) -> bool:
        """False if there may be more documents."""
        return self.texts.is_complete


def prompts_behind(
    documents: Sequence[SeenDocument],
    models: Sequence[ModelStep],
    answering: Sequence[ModelStep],
    queries: Iterable[str],
    question: str | None,
    filled: Filled | None = None,
) -> Behind:
    """The prompts behind an answer, with those of these documents that are in them.

    Args:
        documents: what may be in a prompt.
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
        question: the user's own words, which are not a document even if they quote one.
        filled: what prompt templates were filled with.
    """
    models = models[-MAX_MODELS:]
    provenance = _Provenance(models, answering, queries, filled or {})
    behind = _behind(provenance, answering, [*documents, *windows(documents)], question or "")
    if behind.found or not behind.is_complete:
        return replace(behind, found=_without_their_parts(behind.found))
    beside = texts_beside(documents)
    return _behind(provenance, answering, beside, question or "") if beside else behind


def _without_their_parts(found: Sequence[Found]) -> list[Found]:
    """These documents without the small texts of which a larger one is there."""
    larger = {id(each.entry.document.metadata) for each in found if each.entry.is_beside}
    return [each for each in found if each.entry.is_beside or id(each.entry.document.metadata) not in larger]


def _behind(
    provenance: _Provenance, answering: Sequence[ModelStep], documents: Sequence[SeenDocument], question: str
) -> Behind:
    """The prompts behind an answer, with those of these documents that are in them."""
    has_history = bool(provenance.earlier) and any(entry.from_history for entry in documents)
    said: AbstractSet[int] = frozenset()
    is_one = len(answering) == 1 and not has_history and not provenance.candidates(answering[0])
    if is_one:  # a closer look at its own parts is enough, and mostly none
        run = answering[0]
        entries: dict[str, SeenDocument] = {}
        for entry in documents:
            entries.setdefault(run.seen.get(entry, entry.text), entry)
        order = provenance.in_order(run)
        texts = PromptTexts(provenance.texts[: len(order)], apart=question, silent=provenance.silent)
        matches, runs = texts.find(list(entries), order=order), [run]
    else:
        entries = {entry.text: entry for entry in reversed(documents)}
        entries |= {entry.text: entry for entry in reversed(documents) if not entry.from_history}
        for run in (run for run in reversed(provenance.models) if run.rewritten):
            entries |= {text: entry for entry, text in run.seen.items() if text is not entry.text}
        texts = PromptTexts(provenance.texts, apart=question, silent=provenance.silent)
        matches = texts.find(list(entries))
        runs, said = provenance.behind(answering, texts)
    by_part: dict[int, list[tuple[Match, str]]] = {}
    for text, own in zip(entries, matches, strict=True):
        for match in own:
            by_part.setdefault(match.part, []).append((match, text))
    parts = {number: provenance.parts[number] for run in runs for number in provenance.in_order(run)}
    return Behind(
        runs=runs,
        texts=texts,
        parts=parts,
        found=_found(provenance, entries, by_part, parts),
        holding={number: [match for match, _ in own] for number, own in by_part.items()},
        said=said,
    )


def _found(
    provenance: _Provenance,
    entries: Mapping[str, SeenDocument],
    by_part: Mapping[int, Sequence[tuple[Match, str]]],
    parts: Iterable[int],
) -> list[Found]:
    """The documents that count, by what stands of these texts in the parts of the prompts behind an answer."""
    short = {word for text in entries if len(text) < SHORT for word in words_of(text)[0]}
    found: dict[str, Found] = {}
    for number in parts:
        for match, text in sorted(by_part.get(number, ()), key=lambda pair: pair[0].position):
            entry = entries[text]
            known = found.get(text)
            if (entry.from_history and number in provenance.earlier) or (known is not None and known.whole):
                continue
            if len(text) < SHORT and not is_a_document(
                text, provenance.parts[number][0].text, provenance.filled, short
            ):
                continue
            if known is None or match.whole or len(match.text) > len(known.text):
                found[text] = Found(entry, match.text, match.whole, text)
    return list(found.values())


class Turn(enum.Enum):
    """The turn that a part of a prompt belongs to."""

    THIS = enum.auto()
    """The turn of the answer: any document in it counts."""
    EARLIER = enum.auto()
    """History: a document in it counts if this request found it, since programs put documents before the history, too."""
    SPOKEN = enum.auto()
    """A model's words, which hold no documents even if they quote some."""


def _turns_of(parts: Sequence[PayloadMessage], was_said: Callable[[str], bool]) -> list[Turn]:
    """The turns of a prompt's parts.

    An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
    assistant's messages that no model gave are of the program's making, and may hold documents; so is one right after the message
    that ends a turn.

    Args:
        parts: the prompt.
        was_said: whether a model said a text in this request.
    """
    people = [index for index, part in enumerate(parts) if part.role == "human"]
    made = {index for index, part in enumerate(parts) if part.role == "ai" and not was_said(part.text)}
    ends = (index for index in made if people and people[0] < index < people[-1] and parts[index - 1].role != "ai")
    end = max(ends, default=-1)

    def turn(index: int, role: str) -> Turn:
        if role == "ai":
            return Turn.THIS if index > end and index in made else Turn.SPOKEN
        return Turn.EARLIER if index < end and role != "system" else Turn.THIS

    return [turn(index, part.role) for index, part in enumerate(parts)]


def _squeezed(text: str) -> str:
    """A text without white space, which differs between a reply and the message made of it."""
    return "".join(text[:_MAX_COMPARED].split())


class _Provenance:
    """Which calls stand behind others, by the parts of their prompts.

    Args:
        models: the calls that may stand behind the answer.
        answering: those whose words the caller got.
        queries: what was searched with.
        filled: what prompt templates were filled with.
    """

    def __init__(
        self, models: Sequence[ModelStep], answering: Sequence[ModelStep], queries: Iterable[str], filled: Filled
    ) -> None:
        self.models = models
        self.filled = filled
        self._queries = frozenset(normalise_spaces(query) for query in queries)
        self._numbers: dict[tuple[bool, str], int] = {}
        self._parts: dict[int, dict[int, None]] = {}
        self._results: dict[int, str] = {}
        self.parts: dict[int, tuple[PayloadMessage, Turn]] = {}
        """The parts of all prompts by their numbers."""
        said = {_squeezed(run.said) for run in models}
        was_said = functools.cache(lambda text: _squeezed(text) in said)  # an agent's prompts repeat their parts
        for run in dict.fromkeys((*answering, *models)):
            own = self._parts[id(run)] = {}
            for part, turn in zip(run.prompt, _turns_of(run.prompt, was_said), strict=True):
                number = self._numbers.setdefault((part.role == "ai", part.text), len(self._numbers))
                own[number] = None
                self.parts.setdefault(number, (part, turn))  # the first prompt is that of the answer, and decides
                if part.role == "tool":
                    self._results[number] = part.text
        self._words = {id(run): self._said(run) for run in models}
        brief = [run for run in models if run not in answering and is_one_word(run.said)]
        self._brief = {id(run): run for run in brief} if len(brief) == 1 else {}  # several grade or choose

    @property
    def texts(self) -> list[str]:
        """The distinct parts of all prompts; those of the answer come first."""
        return [text for _, text in self._numbers]

    @property
    def silent(self) -> list[int]:
        """The numbers of the parts that are a model's own words, which hold no documents."""
        return [number for number, (_, turn) in self.parts.items() if turn is Turn.SPOKEN]

    @functools.cached_property
    def earlier(self) -> frozenset[int]:
        """The numbers of the parts that are of earlier turns."""
        return frozenset(number for number, (_, turn) in self.parts.items() if turn is Turn.EARLIER)

    def in_order(self, run: ModelStep) -> list[int]:
        """The numbers of a prompt's parts: a document that stands in this turn and an earlier one has its place in this."""
        return sorted(self._parts[id(run)], key=self.earlier.__contains__)

    def candidates(self, later: ModelStep) -> list[ModelStep]:
        """The calls that may stand behind another one and add anything: an agent's call repeats all earlier ones."""
        return [run for run in self.models if self._is_candidate(run, later)]

    def _is_candidate(self, run: ModelStep, later: ModelStep) -> bool:
        is_heard = self._words[id(run)] or id(run) in self._brief
        return (
            bool(is_heard)
            and _ended_before(run, later)
            and not self._parts[id(run)].keys() <= self._parts[id(later)].keys()
        )

    def _speakers_in(self, held: Mapping[str, Holders]) -> Mapping[int, list[ModelStep]]:
        """By the number of a part, the calls whose words stand in it."""
        speakers: dict[int, list[ModelStep]] = {}
        for run in self.models:
            for number in {number for text in self._words[id(run)] for number in held[text].free | held[text].as_line}:
                speakers.setdefault(number, []).append(run)
        return speakers

    def behind(self, answering: Sequence[ModelStep], prompts: PromptTexts) -> tuple[list[ModelStep], AbstractSet[int]]:
        """The calls behind an answer, in order of time, and the tools' results that are what a model said."""
        began = min((run.started_ns for run in answering), default=0)
        order = {id(run): (began, index) for index, run in enumerate(answering)}
        held = self._held(prompts)
        speakers = self._speakers_in(held)
        waiting = list(answering)
        behind: list[ModelStep] = []
        said: set[int] = set()
        known = {id(run) for run in waiting}
        while waiting:
            current = waiting.pop()
            behind.append(current)
            parts = self._parts[id(current)].keys()
            near = {id(run): run for number in parts for run in speakers.get(number, ())}
            for earlier in {**near, **self._brief}.values():
                if not self._is_candidate(earlier, current):
                    continue
                words = [held[text] for text in self._words[id(earlier)]]
                said.update(number for own in words for number in own.as_line if number in self._results)
                if id(earlier) not in known and (
                    any(_are_quoted(own, parts) for own in words) or self._is_drafted(earlier, parts)
                ):
                    known.add(id(earlier))
                    waiting.append(earlier)
        return sorted(behind, key=lambda run: order.get(id(run), (run.started_ns, 0))), said

    def _is_drafted(self, run: ModelStep, parts: Iterable[int]) -> bool:
        """Whether one of these parts hands on the single word that a call said."""
        return id(run) in self._brief and any(
            is_a_draft(run.said, text, self.filled)
            for number in parts
            if (text := self.parts[number][0].text) and self.parts[number][1] is not Turn.SPOKEN
        )

    def _held(self, prompts: PromptTexts) -> dict[str, Holders]:
        """Which parts hold what a model said; also tools' results that are a part of it, as of an inner answer."""
        said = list(dict.fromkeys(text for own in self._words.values() for text in own))
        held = Speech(prompts).held(said)
        results = {number: words_of(text[:_MAX_RESULT])[0] for number, text in self._results.items()}
        read = PromptWords([own.words for own in held])
        for (number, words), positions in zip(results.items(), read.positions_of(list(results.values())), strict=True):
            for position in positions if len(words) > 1 else ():
                held[read.part_of(position)].as_line.add(number)
        return dict(zip(said, held, strict=True))

    def _said(self, run: ModelStep) -> list[str]:
        """What a model said, without grades and queries."""
        return [
            text for text in words_said_by(run) if normalise_spaces(text) not in self._queries and not is_verdict(text)
        ]


def _ended_before(earlier: ModelStep, later: ModelStep) -> bool:
    return not earlier.beside_search and earlier.error is None and 0 < earlier.ended_ns <= later.started_ns


def _are_quoted(words: Holders, parts: AbstractSet[int]) -> bool:
    """Whether one of these parts of a prompt holds what a model said, other than inside a document."""
    return not parts.isdisjoint(words.as_line) or (
        parts.isdisjoint(words.in_found) and not parts.isdisjoint(words.free)
    )
