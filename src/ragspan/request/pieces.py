"""Cuts every prompt behind an answer into pieces once, each with its source. What is evidence is a filter over these.

Each character of a part of a prompt gets one source, from the surest to the least sure: documents first (they are placed
already), then what people and models said, results of tools, and what else the program is known to have written.
"""

from __future__ import annotations

import enum
import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from ragspan.matching import LiteralPlaces, PromptTexts, Span, occurrences, unescaped, words_of
from ragspan.request.contents import PayloadMessage, texts_in
from ragspan.request.documents import SeenDocuments
from ragspan.request.prompts import AnswerPrompts, PlacedDocument, Turn, stands_as_line
from ragspan.request.said_in import memories_in, schemas_in, spoken_in
from ragspan.request.templates import FilledTexts, data_in
from ragspan.request.tree import ModelStep, RequestTree, SearchStep, Step, ToolStep
from ragspan.safe_copy import Snapshot

_LONG_ARGUMENT = 5
"""Words of an argument that a result repeats wherever it has them."""
_MIN_ECHO = 3
_MIN_VALUE = 4
_ENDS = " \t\n.,;!?)]}"
"""What a document before a piece may end with."""
_MAX_LOOKED_AT = 200_000
_MAX_TEXTS = 200
_MAX_SEARCHED = 2_000_000
_MAX_PIECES = 20_000
_pieces = re.compile(rb"\x00+|\x01+|\x02+|\x03+|\x04+|\x05+|\x06+|\x07+|\x08+", re.DOTALL)


class Source(enum.IntEnum):
    """Where the words of a piece come from; the first four are those of `ragspan.matching`."""

    UNKNOWN = 0
    """Not known: no evidence, but it may be a document."""
    DOCUMENT = 1
    USER = 2
    MODEL = 3
    TOOL = 4
    HISTORY = 5
    """Documents and results of tools of earlier turns."""
    METADATA = 6
    """What a formatter wrote beside documents."""
    DATA = 7
    """What else the program put there: a step's output, memories, a field of the caller's."""
    TEMPLATE = 8
    """Instructions."""


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Words in one piece of a part of a prompt."""

    part: int
    span: Span
    source: Source
    text: str
    document: PlacedDocument | None = None


def pieces_of(
    tree: RequestTree, seen: SeenDocuments, prompts: AnswerPrompts, question: str, filled: FilledTexts
) -> list[PromptPiece]:
    """The pieces of the prompts behind an answer, in prompt order.

    Args:
        tree: the request.
        seen: its documents.
        prompts: the prompts, with the documents that are in them.
        question: the user's own words.
        filled: what prompt templates were filled with.
    """
    return list(islice(_Cutter(tree, seen, prompts, question, filled).pieces(), _MAX_PIECES))


class _Cutter:
    def __init__(
        self, tree: RequestTree, seen: SeenDocuments, prompts: AnswerPrompts, question: str, filled: FilledTexts
    ) -> None:
        steps = [step for each in tree.chain_of_requests for step in each.steps]
        self._seen, self._prompts, self._filled = seen, prompts, filled
        models = [step for step in steps if isinstance(step, ModelStep)]
        self._asking = {around for call in models for around in call.around()}
        """The steps that ask a model."""
        self._models = models
        self._tools = [step for step in steps if isinstance(step, ToolStep)]
        self._searches: dict[Step, list[SearchStep]] = {}
        """By the steps around them."""
        for search in (step for step in steps if isinstance(step, SearchStep)):
            for around in search.around():
                self._searches.setdefault(around, []).append(search)
        self._placed = {(one.match.part, one.match.start): one for one in prompts.placed}
        self._starts = {number: sorted(match.start for match in own) for number, own in prompts.held.items()}
        self._values: dict[int, list[str]] = {}
        """By the list of what a template was filled with, what has to be looked for: documents were."""
        self._counted = {one.match.text for one in prompts.placed}
        self._document_texts = {text for each in seen.all for text in (each.text, each.document.written)}
        last = max((call.started_ns for call in prompts.calls), default=0)
        earlier = [call for call in models if 0 < call.ended_ns <= last][-_MAX_TEXTS:]
        self._said: dict[str, list[ModelStep]] = {}
        for call in earlier:
            if text := call.said.strip():
                self._said.setdefault(text, []).append(call)
        self._said_in: dict[int, list[tuple[int, str]]] = {}
        """By the number of a part, where it has what models said."""
        places = LiteralPlaces(prompts.texts.parts, len(self._said))
        for said in self._said:
            for number, start in places.of(said):
                self._said_in.setdefault(number, []).append((start, said))
        written = ((text.strip(), call) for call in earlier if call.reply for text in texts_in(call.reply.arguments))
        self._written: dict[str, list[ModelStep]] = {}
        for text, call in islice(written, _MAX_TEXTS):
            self._written.setdefault(text, []).append(call)
        self._asked = [each.text for state in (tree.inputs, tree.asked_before) for each in _people_in(state)]
        self._results = [
            tool.result
            for tool in self._tools[-_MAX_TEXTS:]
            if isinstance(tool.result, str) and len(tool.result.strip()) >= _MIN_VALUE and not tool.shown
            if not self._found_nothing(tool) and tool not in self._asking
        ]
        self._known = self._texts_that_say_nothing(steps)
        self._data = data_in(tree, [question, *seen.queries, *self._asked]) if prompts.placed else []

    def pieces(self) -> Iterator[PromptPiece]:
        for number, (message, turn) in self._prompts.parts.items():
            text = self._prompts.texts.parts[number]
            if turn is not Turn.SPOKEN:
                self._mark(number, message, turn, text)
            is_data = text.lstrip()[:1] in {"{", "["}
            for found in _pieces.finditer(self._prompts.texts.marks_of(number).replace(b"\xff", b"\x00")):
                source = Source(found[0][0])
                if source is Source.DOCUMENT:
                    yield from self._documents_in(number, *found.span(), text)
                    continue
                piece = text[found.start() : found.end()]
                yield PromptPiece(number, found.span(), source, unescaped(piece) if is_data else piece)

    def _documents_in(self, number: int, start: int, end: int, text: str) -> Iterator[PromptPiece]:
        """One after the other without anything between are one range; what does not count there is a piece without a document."""
        own = self._starts[number]
        edges = sorted({start, *own[bisect_left(own, start) : bisect_left(own, end)], end})
        for low, high in pairwise(edges):
            yield PromptPiece(number, (low, high), Source.DOCUMENT, text[low:high], self._placed.get((number, low)))

    # Marks

    def _mark(self, number: int, message: PayloadMessage, turn: Turn, text: str) -> None:
        """Give each character of a part its source."""
        if message.role == "tool":
            self._mark_tool(number, message, turn, text)
            return
        held = self._prompts.held.get(number, ())
        quoting = self._mark_words(number, text, held=bool(held), role=message.role)
        held = [match for match in held if not any(low <= match.start and match.end <= high for low, high in quoting)]
        if turn is Turn.EARLIER:
            self._mark_history(number)
            self._claim_all(number, text, Source.USER if message.role == "human" else Source.TEMPLATE)
        elif turn is Turn.QUOTED:
            self._claim_all(number, text, Source.MODEL)
        elif text in self._filled:
            self._mark_template(number, text)
            self._claim_all(number, text, Source.TEMPLATE)
        elif held:
            self._claim_all(number, text, Source.DATA)
        else:
            for value in self._data:
                self._claim_each(number, text, value, Source.DATA)
            if message.role == "system" and self._seen.empty_search:
                self._claim_all(number, text, Source.TEMPLATE)
        for value in self._known if not held else ():
            self._claim_each(number, text, value, Source.TEMPLATE)

    def _mark_words(self, number: int, text: str, *, held: bool, role: str) -> list[Span]:
        """Mark what people and models said, results of tools, memories and schemas; returns where models of this request speak."""
        claim = self._prompts.texts.claim
        for asked in self._asked:
            self._claim_each(number, text, asked, Source.USER)
        spoken = [] if held and role == "ai" else list(spoken_in(text))
        is_talk = bool({"ai", "human"} & {role for role, _ in spoken})
        quoting = self._mark_lines_of_models(number, text)
        for result in self._results:
            for start, end in _spans(text, result):
                if not any(low <= start < high for name, (low, high) in spoken if name in {"ai", "human"}):
                    holds = Source.DOCUMENT in self._prompts.texts.marks_of(number)[start:end]
                    claim(number, start, end, Source.METADATA if holds else Source.TOOL)
        for value in self._data if spoken and not held else ():
            if next(spoken_in(value), None) is None:
                self._claim_each(number, text, value, Source.DATA)
        for name, (start, end) in spoken:
            source = {"ai": Source.MODEL, "human": Source.USER, "tool": Source.HISTORY}.get(name, Source.TEMPLATE)
            claim(number, start, end, source if is_talk or name != "tool" else Source.TEMPLATE)
        for start, end in memories_in(text):
            claim(number, start, end, Source.DATA)
        for start, end in schemas_in(text):
            claim(number, start, end, Source.TEMPLATE)
        return quoting

    def _mark_lines_of_models(self, number: int, text: str) -> list[Span]:
        """Mark what models of this request said by themselves, as lines of their own."""
        spans: list[Span] = []
        for start, said in self._said_in.get(number, ()):
            end = start + len(said)
            is_line = stands_as_line(text, start, end) or text[max(0, start - 20) : start].rstrip().endswith(":")
            if is_line and _is_own(said, self._said[said]):
                self._prompts.texts.claim(number, start, end, Source.MODEL)
                spans.append((start, end))
        return spans

    def _mark_history(self, number: int) -> None:
        """The documents of a part of an earlier turn that no search of this request found."""
        marks = self._prompts.texts.marks_of(number)
        for match in self._prompts.held.get(number, ()):
            if match.text not in self._counted:
                marks[match.start : match.end] = bytes([Source.HISTORY]) * (match.end - match.start)

    def _mark_template(self, number: int, text: str) -> None:
        """What a prompt template was filled with: around documents it is what a formatter wrote."""
        marks = self._prompts.texts.marks_of(number)
        bare = bytearray(marks)
        given = self._filled[text]
        if id(given) not in self._values:  # models inside one step share it
            long = dict.fromkeys(value for value in given if len(value.strip()) >= _MIN_VALUE)
            self._values[id(given)] = [value for value in long if value not in self._document_texts]
        for match in self._prompts.held.get(number, ()):
            if match.text in self._document_texts and match.text in given:
                bare[match.start : match.end] = bytes(match.end - match.start)
        for value in self._values[id(given)]:
            for start, end in _spans(text, value)[:1]:
                bare[start:end] = bytes(end - start)
                if Source.DOCUMENT in marks[start:end]:
                    self._prompts.texts.claim(number, start, end, Source.METADATA)
                elif self._is_data(value):
                    self._prompts.texts.claim(number, start, end, Source.DATA)
                else:  # it does not become a part of the template
                    marks[start:end] = marks[start:end].translate(_UNKNOWN)
        if (first := bare.find(Source.DOCUMENT)) >= 0:  # the template itself writes documents
            self._prompts.texts.claim(
                number, *self._lines_around(text, first, bare.rfind(Source.DOCUMENT) + 1), Source.METADATA
            )

    def _is_data(self, value: str) -> bool:
        return any(value.strip() == one.strip() or (len(one) >= _MIN_VALUE * 2 and one in value) for one in self._data)

    def _lines_around(self, text: str, start: int, end: int) -> Span:
        """The lines of documents, with those before them that have something of their metadata."""
        start = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        known = {str(value) for one in self._prompts.placed for value in one.entry.document.metadata.values()}
        known = {value for value in known if len(value) >= _MIN_VALUE}
        while start > 0:
            before = text.rfind("\n", 0, start - 1) + 1
            if not any(value in text[before:start] for value in known):
                break
            start = before
        return start, len(text) if after < 0 else after

    def _claim_all(self, number: int, text: str, source: Source) -> None:
        self._prompts.texts.claim(number, 0, len(text), source)

    def _claim_each(self, number: int, text: str, value: str, source: Source) -> None:
        for start, end in _spans(text, value):
            self._prompts.texts.claim(number, start, end, source)

    # Tools

    def _mark_tool(self, number: int, message: PayloadMessage, turn: Turn, text: str) -> None:
        held = self._prompts.held.get(number, ())
        tool = next((each for each in self._tools if each.call_id == message.call_id is not None), None)
        if tool is not None and (self._found_nothing(tool) or self._is_reply(tool, text)):
            self._claim_all(number, text, Source.MODEL)
            return
        if turn is Turn.EARLIER:
            self._mark_history(number)
        self._mark_arguments(number, message, text)
        source = Source.HISTORY if turn is Turn.EARLIER else Source.METADATA if held else Source.TOOL
        self._claim_all(number, text, source)

    def _is_reply(self, tool: ToolStep, text: str) -> bool:
        """Whether a tool that asks a model returned what that said: then it brings the grounds of its own prompt."""
        if tool not in self._asking:
            return False
        result = " ".join(words_of(text[:_MAX_LOOKED_AT]))
        said = [" ".join(words_of(call.said[:_MAX_LOOKED_AT])) for call in self._models if call.is_within(tool)]
        return any(words and (words in result or result in words) for words in said)

    def _mark_arguments(self, number: int, message: PayloadMessage, text: str) -> None:
        """What a result repeats of its call's arguments, and of longer ones that models wrote, is a model's."""
        calls = [call for part, _ in self._prompts.parts.values() for call in part.calls or ()]
        own = [text for call in calls if call.id == message.call_id for text in texts_in(call.arguments)]
        own += [text for tool in self._tools if tool.call_id == message.call_id for text in texts_in(tool.inputs)]
        long = [each for each in dict.fromkeys([*own, *self._notes]) if _is_long(each)][:_MAX_TEXTS]
        if long and len(text) <= _MAX_LOOKED_AT:
            for matches in PromptTexts([text]).find(long):
                for match in matches:
                    self._prompts.texts.claim(number, match.start, match.end, Source.MODEL)
        marks = self._prompts.texts.marks_of(number)
        rest = bytearray(marks)
        for each in dict.fromkeys(own):
            for start, end in _spans(text, each):
                rest[start:end] = marks[start:end].translate(_MODEL)
        if 2 * _count_free(text, rest) <= _count_free(text, marks):  # an echo
            for found in _pieces.finditer(bytes(rest)):
                if not found[0][0] and len(words_of(text[slice(*found.span())])) < _MIN_ECHO:
                    rest[slice(*found.span())] = bytes([Source.MODEL]) * len(found[0])
            marks[:] = rest

    @functools.cached_property
    def _notes(self) -> list[str]:
        """The longer texts that models wrote by themselves into calls of tools."""
        return [each for each, calls in self._written.items() if _is_long(each) and _is_own(each, calls)]

    def _found_nothing(self, tool: ToolStep) -> bool:
        """Whether a tool is a search that came back empty."""
        inside = self._searches.get(tool, ())
        return bool(inside) and not any(step.found for step in inside) and tool not in self._asking

    def _texts_that_say_nothing(self, steps: Iterable[Step]) -> list[str]:
        """Texts made of an empty search's result, and those of the metadata of documents: not unknown, if no evidence."""
        in_vain = [text for step in steps if step.inputs == [] and isinstance(text := step.output, str)]
        in_vain += [tool.result for tool in self._tools if self._found_nothing(tool) and isinstance(tool.result, str)]
        about = (value for entry in self._seen.all for value in entry.document.metadata.values())
        own = dict.fromkeys(str(value) for value in about if type(value) in {str, int, float})
        return [text for text in islice([*in_vain, *own], _MAX_TEXTS) if text.strip()]


_UNKNOWN = bytes([255, *range(1, 256)])
_MODEL = bytes([Source.MODEL, *range(1, 256)])


def _is_own(words: str, calls: Sequence[ModelStep]) -> bool:
    """Whether a model said this by itself: what its prompt held stays evidence if it quotes it."""
    return not all(any(words in part.text for part in call.prompt) for call in calls)


def _is_long(argument: str) -> bool:
    return len(argument.split(None, _LONG_ARGUMENT)) >= _LONG_ARGUMENT


def _people_in(value: Snapshot) -> Iterator[PayloadMessage]:
    """The messages of people in what a request was called with."""
    if isinstance(value, PayloadMessage):
        if value.role == "human":
            yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _people_in(item)


def _spans(text: str, needle: str) -> list[Span]:
    wanted = needle.strip()
    if not 0 < len(wanted) <= len(text) <= _MAX_SEARCHED:
        return []
    return [(start, start + len(wanted)) for start in occurrences(text, wanted)]


def _count_free(text: str, marks: bytes | bytearray) -> int:
    """How many words belong to nothing yet."""
    return sum(len(words_of(text[slice(*found.span())])) for found in re.finditer(rb"\x00+", marks))


def says_something(text: str) -> bool:
    """Whether a piece is more than a mark, a number of a line, a bracket, a tag or one word before a colon."""
    plain = _bare_tag.sub(" ", text[:_MAX_LOOKED_AT])
    words = words_of(plain)
    if len(words) == 1 and plain.rstrip().endswith(":"):
        return False
    return len(words) > 1 or any(len(word) >= _MIN_VALUE or word.isdigit() for word in words)


_bare_tag = re.compile(r"</?[A-Za-z][\w.-]{0,40}/?>")


def trimmed(piece: str) -> str:
    """A piece without what belongs to its neighbours."""
    return piece.lstrip(_ENDS).strip().rstrip("([{")
