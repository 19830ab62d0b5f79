"""Cuts every prompt behind an answer into pieces once, each with its source. What is evidence is a filter over these.

Each character of a part of a prompt gets one source, from the surest to the least sure: documents first (they are placed
already), then what people and models said, results of tools, and what else the program is known to have written.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise, zip_longest

from ragspan.matching import PromptTexts, Span, occurrences, unescaped, words_of
from ragspan.request.contents import ROLES, PayloadMessage, texts_in
from ragspan.request.documents import SeenDocuments
from ragspan.request.prompts import AnswerPrompts, PlacedDocument, Turn, stands_as_line
from ragspan.request.templates import FilledTexts, data_in
from ragspan.request.tree import ModelStep, RequestTree, SearchStep, ToolStep
from ragspan.safe_copy import Snapshot
from ragspan.turns import give_turn

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
_bare_tag = re.compile(r"</?[A-Za-z][\w.-]{0,40}/?>")
_ROLE = r"human|user|ai|assistant|system|developer|tool|function"
_line = re.compile(
    rf"^[ \t]*(?:[-*>] )?\**(?P<role>{_ROLE})(?: ?\([^)\n]{{0,60}}\))?\**[ \t]*:", re.IGNORECASE | re.MULTILINE
)
_tagged = re.compile(
    rf"<message (?:type|role)=\"(?P<role>{_ROLE})\"[^>]{{0,200}}>(?P<said>.*?)</message>", re.IGNORECASE | re.DOTALL
)
_brace = re.compile("[{}]")
_fields = re.compile(r"[\"']properties[\"']\s*:")
_type = re.compile(r"[\"']type[\"']\s*:\s*[\"'](?:object|string|integer|number|boolean|array|null)[\"']")
_next_section = re.compile(r"\n[ \t]*\n(?=[#<\[]|[A-Z][\w ]{0,40}:)")


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


_UNKNOWN = bytes([255, *range(1, 256)])
_MODEL = bytes([Source.MODEL, *range(1, 256)])


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Words in one piece of a part of a prompt."""

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
        self._seen, self._prompts, self._texts, self._filled = seen, prompts, prompts.texts, filled
        steps = [step for each in tree.chain_of_requests for step in each.steps]
        self._models = [step for step in steps if isinstance(step, ModelStep)]
        self._tools = [step for step in steps if isinstance(step, ToolStep)]
        self._asking = {around for call in self._models for around in call.around()} if self._tools else set()
        """The steps that ask a model."""
        searches = [step for step in steps if isinstance(step, SearchStep)]
        self._in_vain = {
            tool
            for tool in self._tools
            if tool not in self._asking
            and (inside := [step for step in searches if step.is_within(tool)])
            and not any(step.found for step in inside)
        }
        """The tools that are a search that came back empty."""
        self._placed = {(one.match.part, one.match.start): one for one in prompts.placed}
        self._document_texts = {text for each in seen.all for text in (each.text, each.document.written)}
        last = max((call.started_ns for call in prompts.calls), default=0)
        earlier = [call for call in self._models if 0 < call.ended_ns <= last][-_MAX_TEXTS:]
        self._said: dict[str, list[ModelStep]] = {}
        for call in earlier:
            self._said.setdefault(call.said.strip(), []).append(call)
        self._said_in: dict[int, list[tuple[int, str]]] = {}
        """By the number of a part, where it has what models said."""
        for said in filter(None, self._said):
            for number, start in self._texts.places_of(said):
                self._said_in.setdefault(number, []).append((start, said))
        self._asked = [each.text for state in (tree.inputs, tree.asked_before) for each in _people_in(state)]
        self._results = [
            tool.result
            for tool in self._tools[-_MAX_TEXTS:]
            if isinstance(tool.result, str) and len(tool.result.strip()) >= _MIN_VALUE and not tool.shown
            if tool not in self._in_vain and tool not in self._asking
        ]
        empty = [step.output for step in steps if step.inputs == []]
        empty += [tool.result for tool in self._in_vain]
        about = (value for entry in seen.all for value in entry.document.metadata.values())
        own = dict.fromkeys(str(value) for value in about if type(value) in {str, int, float})
        texts = (text for text in (*empty, *own) if isinstance(text, str) and text.strip())
        self._known = list(islice(texts, _MAX_TEXTS))
        """Made of an empty search's result, or metadata of documents: not unknown, if no evidence."""
        self._data = data_in(tree, [question, *seen.queries, *self._asked]) if prompts.placed else []

    def pieces(self) -> Iterator[PromptPiece]:
        for number, (message, turn) in self._prompts.parts.items():
            text = self._texts.parts[number]
            if turn is not Turn.SPOKEN and message.role == "tool":
                self._mark_tool(number, message, turn, text)
            elif turn is not Turn.SPOKEN:
                self._mark(number, message.role, turn, text)
            starts = sorted(match.start for match in self._prompts.held.get(number, ()))
            is_data = text.lstrip()[:1] in {"{", "["}
            for found in _pieces.finditer(self._texts.marks_of(number).replace(b"\xff", b"\x00")):
                source, (start, end) = Source(found[0][0]), found.span()
                if source is Source.DOCUMENT:  # one after the other without anything between are one range
                    inside = starts[bisect_left(starts, start) : bisect_left(starts, end)]
                    for low, high in pairwise(sorted({start, *inside, end})):
                        yield PromptPiece(source, text[low:high], self._placed.get((number, low)))
                else:
                    yield PromptPiece(source, unescaped(text[start:end]) if is_data else text[start:end])

    # Marks

    def _claim(self, number: int, source: Source, *spans: Span) -> None:
        for start, end in spans:
            self._texts.claim(number, start, end, source)

    def _mark(self, number: int, role: str, turn: Turn, text: str) -> None:
        """Give each character of a message's part its source."""
        give_turn()
        held = self._prompts.held.get(number, [])
        quoting = self._mark_words(number, text, is_reply=bool(held) and role == "ai", held=bool(held))
        held = [match for match in held if not any(low <= match.start and match.end <= high for low, high in quoting)]
        whole = 0, len(text)
        if turn is Turn.EARLIER:
            self._mark_history(number)
            self._claim(number, Source.USER if role == "human" else Source.TEMPLATE, whole)
        elif turn is Turn.QUOTED:
            self._claim(number, Source.MODEL, whole)
        elif text in self._filled:
            self._mark_template(number, text)
            self._claim(number, Source.TEMPLATE, whole)
        elif held:
            self._claim(number, Source.DATA, whole)
        else:
            for value in self._data:
                self._claim(number, Source.DATA, *_spans(text, value))
            if role == "system" and self._seen.empty_search:
                self._claim(number, Source.TEMPLATE, whole)
        for value in self._known if not held else ():
            self._claim(number, Source.TEMPLATE, *_spans(text, value))

    def _mark_words(self, number: int, text: str, *, is_reply: bool, held: bool) -> list[Span]:
        """Mark what people and models said, and results of tools; returns where models of this request speak."""
        for asked in self._asked:
            self._claim(number, Source.USER, *_spans(text, asked))
        spoken = [] if is_reply else list(_spoken_in(text))
        talk = [span for name, span in spoken if name in {"ai", "human"}]
        quoting = self._lines_of_models(number, text)
        self._claim(number, Source.MODEL, *quoting)
        for result in self._results:
            for start, end in _spans(text, result):
                if not any(low <= start < high for low, high in talk):
                    holds = Source.DOCUMENT in self._texts.marks_of(number)[start:end]
                    self._claim(number, Source.METADATA if holds else Source.TOOL, (start, end))
        for value in self._data if spoken and not held else ():
            if next(_spoken_in(value), None) is None:
                self._claim(number, Source.DATA, *_spans(text, value))
        sources = {"ai": Source.MODEL, "human": Source.USER, "tool": Source.HISTORY if talk else Source.TEMPLATE}
        for name, span in spoken:
            self._claim(number, sources.get(name, Source.TEMPLATE), span)
        self._claim(number, Source.TEMPLATE, *_schemas_in(text))
        return quoting

    def _lines_of_models(self, number: int, text: str) -> list[Span]:
        """Where models of this request speak by themselves, in lines of their own."""
        quoting: list[Span] = []
        for start, said in self._said_in.get(number, ()):
            end = start + len(said)
            is_line = stands_as_line(text, start, end) or text[max(0, start - 20) : start].rstrip().endswith(":")
            if is_line and _is_own(said, self._said[said]):
                quoting.append((start, end))
        return quoting

    def _mark_history(self, number: int) -> None:
        """The documents of a part of an earlier turn that no search of this request found."""
        marks = self._texts.marks_of(number)
        counted = {one.match.text for one in self._prompts.placed}
        for match in self._prompts.held.get(number, ()):
            if match.text not in counted:
                marks[match.start : match.end] = bytes([Source.HISTORY]) * (match.end - match.start)

    def _mark_template(self, number: int, text: str) -> None:
        """What a prompt template was filled with: around documents it is what a formatter wrote."""
        marks = self._texts.marks_of(number)
        bare = bytearray(marks)
        given = self._filled[text]
        for match in self._prompts.held.get(number, ()):
            if match.text in self._document_texts and match.text in given:
                bare[match.start : match.end] = bytes(match.end - match.start)
        for value in dict.fromkeys(given):
            if len(value.strip()) < _MIN_VALUE or value in self._document_texts:
                continue
            for start, end in _spans(text, value)[:1]:
                bare[start:end] = bytes(end - start)
                if Source.DOCUMENT in marks[start:end]:
                    self._claim(number, Source.METADATA, (start, end))
                elif any(
                    value.strip() == one.strip() or (len(one) >= 2 * _MIN_VALUE and one in value) for one in self._data
                ):
                    self._claim(number, Source.DATA, (start, end))
                else:  # it does not become a part of the template
                    marks[start:end] = marks[start:end].translate(_UNKNOWN)
        if (first := bare.find(Source.DOCUMENT)) >= 0:  # the template itself writes documents
            self._claim(number, Source.METADATA, self._lines_around(text, first, bare.rfind(Source.DOCUMENT) + 1))

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

    # Tools

    def _mark_tool(self, number: int, message: PayloadMessage, turn: Turn, text: str) -> None:
        """A tool's result; one that repeats what it was called with, or what a model inside it said, is a model's words."""
        whole = 0, len(text)
        tool = next((each for each in self._tools if each.call_id == message.call_id is not None), None)
        if tool is not None and (tool in self._in_vain or (tool in self._asking and self._is_reply(tool, text))):
            self._claim(number, Source.MODEL, whole)  # then it brings the grounds of its own prompt
            return
        if turn is Turn.EARLIER:
            self._mark_history(number)
        calls = [call for part, _ in self._prompts.parts.values() for call in part.calls or ()]
        own = [given for call in calls if call.id == message.call_id for given in texts_in(call.arguments)]
        own += [given for each in self._tools if each.call_id == message.call_id for given in texts_in(each.inputs)]
        self._mark_arguments(number, text, list(dict.fromkeys(own)))
        held = self._prompts.held.get(number)
        self._claim(number, Source.HISTORY if turn is Turn.EARLIER else Source.METADATA if held else Source.TOOL, whole)

    def _is_reply(self, tool: ToolStep, text: str) -> bool:
        result = " ".join(words_of(text[:_MAX_LOOKED_AT]))
        said = [" ".join(words_of(call.said[:_MAX_LOOKED_AT])) for call in self._models if call.is_within(tool)]
        return any(words and (words in result or result in words) for words in said)

    def _mark_arguments(self, number: int, text: str, own: Sequence[str]) -> None:
        """What a result repeats of its call's arguments, and of longer ones that models wrote, is a model's."""
        long = [each for each in dict.fromkeys([*own, *self._notes]) if _is_long(each)][:_MAX_TEXTS]
        for matches in PromptTexts([text]).find(long) if long and len(text) <= _MAX_LOOKED_AT else ():
            self._claim(number, Source.MODEL, *(match.span for match in matches))
        marks = self._texts.marks_of(number)
        rest = bytearray(marks)
        for each in own:
            for start, end in _spans(text, each):
                rest[start:end] = marks[start:end].translate(_MODEL)
        free, left = ([text[slice(*found.span())] for found in re.finditer(rb"\x00+", each)] for each in (marks, rest))
        if 2 * sum(len(words_of(each)) for each in left) <= sum(len(words_of(each)) for each in free):  # an echo
            for found in re.finditer(rb"\x00+", bytes(rest)):
                if len(words_of(text[slice(*found.span())])) < _MIN_ECHO:
                    rest[slice(*found.span())] = bytes([Source.MODEL]) * len(found[0])
            marks[:] = rest

    @cached_property
    def _notes(self) -> list[str]:
        """The longer texts that models wrote by themselves into calls of tools."""
        written: dict[str, list[ModelStep]] = {}
        texts = (
            (text.strip(), call)
            for calls in self._said.values()
            for call in calls
            if call.reply
            for text in texts_in(call.reply.arguments)
        )
        for text, call in islice(texts, _MAX_TEXTS):
            written.setdefault(text, []).append(call)
        return [each for each, calls in written.items() if _is_long(each) and _is_own(each, calls)]


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


def _spoken_in(text: str) -> Iterator[tuple[str, Span]]:
    """The roles in a conversation that is written in a text, and where each of them speaks, up to the next one."""
    text = text[:_MAX_LOOKED_AT]
    tagged = list(_tagged.finditer(text)) if "<message" in text else []
    for match in tagged:
        yield ROLES[match["role"].lower()], match.span("said")
    lines = list(_line.finditer(text)) if ":" in text and not tagged else []
    for match, after in zip_longest(lines, lines[1:]):
        end = len(text) if after is None else after.start()
        section = _next_section.search(text, match.end(), end)
        yield ROLES[match["role"].lower()], (match.start(), end if section is None else section.start())


def _schemas_in(text: str) -> Iterator[Span]:
    """Where a text has JSON schemas, which say what form an answer is to have; their braces may be doubled."""
    if "properties" not in text or len(text) > _MAX_LOOKED_AT:
        return
    fields, types = ([match.start() for match in sign.finditer(text)] for sign in (_fields, _type))
    opened: list[int] = []
    for match in _brace.finditer(text) if fields and types else ():
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            span = opened.pop(), match.end()
            if all(bisect_left(places, span[0]) < bisect_left(places, span[1]) for places in (fields, types)):
                yield span


def _spans(text: str, needle: str) -> list[Span]:
    wanted = needle.strip()
    if not 0 < len(wanted) <= len(text) <= _MAX_SEARCHED:
        return []
    return [(start, start + len(wanted)) for start in occurrences(text, wanted)]


def says_something(text: str) -> bool:
    """Whether a piece is more than a mark, a number of a line, a bracket, a tag or one word before a colon."""
    plain = _bare_tag.sub(" ", text[:_MAX_LOOKED_AT])
    words = words_of(plain)
    if len(words) == 1 and plain.rstrip().endswith(":"):
        return False
    return len(words) > 1 or any(len(word) >= _MIN_VALUE or word.isdigit() for word in words)


def trimmed(piece: str) -> str:
    """A piece without what belongs to its neighbours."""
    return piece.lstrip(_ENDS).strip().rstrip("([{")
