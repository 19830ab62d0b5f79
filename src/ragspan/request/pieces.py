"""Cuts every prompt of an answer into pieces once, each with its source. What is evidence is a filter over these.

Each character of a part of a prompt gets one source, from the surest to the least sure: documents first (they are placed
already), then what people and models said, results of tools, and what else the program is known to have written.
"""

from __future__ import annotations

import enum
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from ragspan.matching import Span, has_words, occurrences, unescaped, words_of
from ragspan.request.contents import PayloadMessage, leaves_in, spoken_in, texts_in
from ragspan.request.documents import SeenDocuments
from ragspan.request.program_data import FROM_CALLER, FROM_STEP, MIN_VALUE, data_in, filled_texts
from ragspan.request.prompts import AnswerPrompts, Turn, span_of_values, stands_as_line
from ragspan.request.steps import ModelStep, Step, ToolStep
from ragspan.request.tree import RequestTree
from ragspan.turns import give_turn

_LONG = 5  # words of a line that a model wrote into a tool's call, and that the result repeats
_MAX_LOOKED_AT = 200_000
_MAX_TEXTS = 200
_MAX_ROWS, _MAX_TABLE = 100, 20_000  # rows, and characters of a part that may show them
_pieces = re.compile(rb"\x01+|\x00+|\x02+|\x03+|\x04+|\x05+|\x06+")
_tag = re.compile(r"</?[A-Za-z][\w.-]{0,40}/?>|<message [^<>]{0,200}>")
_inserted = re.compile(  # so LlamaIndex puts memories, and the state of an agent, into a message
    r"<memory>.{,20000}?</memory>|(?<=Current state:\n).{,20000}?(?=\n+Current message:)", re.DOTALL
)
_field = re.compile(r"[\[({]*[\"']?\w[\w -]*[\"']?[ \t]*[:=|,][ \t]*[\"']?\Z")  # its name, before its value
_SUMMARY = "here is a summary of the conversation"  # so LangChain's own middleware begins it


class Source(enum.IntEnum):
    """Where the words of a piece come from; the first three are those of `ragspan.matching`."""

    UNKNOWN = 0  # not evidence, but it may be a document
    DOCUMENT = 1
    SAID = 2  # by people and models, or as instructions
    TOOL = 3
    HISTORY = 4  # documents and results of tools of earlier turns
    METADATA = 5  # what a formatter wrote beside documents
    DATA = 6  # what else the program put there: a step's output, memories, a field of the caller's


_UNKNOWN = bytes([255, *range(1, 256)])
_NO_EVIDENCE = bytes([Source.DOCUMENT, Source.SAID])


class PromptPiece(NamedTuple):
    """Words in one piece of a part of a prompt that may be evidence, beside those of documents."""

    source: Source
    text: str


def pieces_of(tree: RequestTree, seen: SeenDocuments, prompts: AnswerPrompts, question: str) -> list[PromptPiece]:
    """The pieces of an answer's prompts that are evidence, or may be, in prompt order."""
    filled = filled_texts(tree, {text for each in seen.all for text in (each.text, each.document.written)})
    has_tools = any(each.all_of(ToolStep) for each in tree.chain_of_requests)
    parts = [
        (number, message, turn)
        for number, (message, turn) in prompts.parts.items()
        if turn is not Turn.SPOKEN and (has_tools or filled.get(message.text) != [] or "<memory>" in message.text)
    ]  # a template that was filled with documents alone has no evidence beside them
    return list(_Segmenter(tree, seen, prompts, filled, question).pieces(parts)) if parts else []


class _Segmenter:
    def __init__(
        self,
        tree: RequestTree,
        seen: SeenDocuments,
        prompts: AnswerPrompts,
        filled: dict[str, list[str]],
        question: str,
    ) -> None:
        self._seen, self._prompts, self._texts, self._filled = seen, prompts, prompts.texts, filled
        self._claim = prompts.texts.claim
        models = [step for each in tree.chain_of_requests for step in each.all_of(ModelStep)]
        tools = [step for each in tree.chain_of_requests for step in each.all_of(ToolStep)]
        above = {call: [outer for outer in call.ancestors() if isinstance(outer, ToolStep)] for call in models if tools}
        self._in_tools = {call for call, outer in above.items() if outer}
        asking = {tool for outer in above.values() for tool in outer}
        last = max((call.started_ns for call in prompts.calls), default=0)
        self._said: dict[str, list[ModelStep]] = {}
        for call in [call for call in models if 0 < call.ended_ns <= last][-_MAX_TEXTS:]:
            for text in (one for one in call.texts_said if one == call.said or has_words(one, _LONG)):
                self._said.setdefault(text.strip(), []).append(call)
        self._said_in: dict[int, list[tuple[int, str]]] = {}
        """By the number of a part, where it has what models said."""
        for said in list(self._said)[-2 * _MAX_TEXTS :]:
            for number, start in self._texts.places_of(said):
                self._said_in.setdefault(number, []).append((start, said))
        given = (leaf for state in (tree.inputs, tree.asked_before) for _, leaf in leaves_in(state))
        self._asked = [one.text for one in given if isinstance(one, PayloadMessage) and one.role == "human"]
        self._results = [
            tool.result
            for tool in tools[-_MAX_TEXTS:]
            if isinstance(tool.result, str) and len(tool.result.strip()) >= MIN_VALUE and not tool.shown
            if tool not in asking and not tool.repeats_call
        ]
        about = (value for entry in seen.all for value in entry.document.metadata.values())
        self._known = list(islice((text for text in about if type(text) is str and text.strip()), _MAX_TEXTS))
        """Metadata of documents: not unknown, if no evidence."""
        data = data_in(tree, [question, *seen.queries, *self._asked]) if prompts.placed else []
        self._data, self._rows = [each[0] for each in data if len(each) == 1], [each for each in data if len(each) > 1]

    def pieces(self, parts: Iterable[tuple[int, PayloadMessage, Turn]]) -> Iterator[PromptPiece]:
        owners = Counter(text for row in self._rows for text in row)
        for number, message, turn in parts:
            text, marks = self._texts.parts[number], self._texts.marks[number]
            is_table = turn is Turn.THIS and message.role != "tool" and len(text) <= _MAX_TABLE
            for row in self._rows[:_MAX_ROWS] if is_table else ():
                if (place := span_of_values(text, row, owners)) is not None:
                    first = _field.search(text, max(0, place[0] - 40), place[0])
                    self._claim(number, Source.DATA, (place[0] if first is None else first.start(), place[1]))
            self._mark(number, message, turn, text)
            if not marks.translate(None, _NO_EVIDENCE):
                continue
            is_data = text.lstrip()[:1] in {"{", "["}
            for found in _pieces.finditer(marks.replace(b"\xff", b"\x00")):
                piece = "" if (mark := found[0][0]) in _NO_EVIDENCE else text[slice(*found.span())]
                if piece.strip():
                    yield PromptPiece(Source(mark), unescaped(piece) if is_data else piece)

    def _mark(self, number: int, message: PayloadMessage, turn: Turn, text: str) -> None:
        """Give each character of a message's part its source."""
        give_turn()
        if message.role == "tool":
            self._mark_tool(number, turn, text)
            return
        role, held = message.role, self._prompts.held.get(number, [])
        quoting = self._mark_words(number, text, is_reply=bool(held) and role == "ai", held=bool(held))
        if role != "ai" and self._prompts.placed:
            self._claim(number, Source.DATA, *(one.span() for one in _inserted.finditer(text[:_MAX_LOOKED_AT])))
        held = [match for match in held if not any(low <= match.start and match.end <= high for low, high in quoting)]
        whole = 0, len(text)
        if turn is not Turn.THIS:
            if turn is Turn.EARLIER:
                self._mark_history(number)
            self._claim(number, Source.SAID, whole)
        elif text in self._filled:
            self._mark_template(number, text)
            self._claim(number, Source.SAID, whole)
        elif held:
            self._claim(number, Source.DATA, whole)
        else:
            for value in self._data:
                self._claim(number, Source.DATA, *_spans(text, value))
            if role == "system" and self._seen.empty_search:
                self._claim(number, Source.SAID, whole)
        for value in self._known if not held else ():
            self._claim(number, Source.SAID, *_spans(text, value))

    def _mark_words(self, number: int, text: str, *, is_reply: bool, held: bool) -> list[Span]:
        """Mark what people, models and tools said; returns where models of this request speak, and tools in a written talk."""
        for asked in self._asked:  # a word or two may be a part of what others say
            is_long, spans = has_words(asked, FROM_STEP), _spans(text, asked)
            self._claim(number, Source.SAID, *(one for one in spans if is_long or stands_as_line(text, *one)))
        spoken = [] if is_reply else list(spoken_in(text))
        talk = [span for name, span in spoken if name in {"ai", "human"}]
        quoting: list[Span] = []
        for start, said in self._said_in.get(number, ()):
            end = start + len(said)
            is_line = stands_as_line(text, start, end) or text[max(0, start - 20) : start].rstrip().endswith(":")
            if (is_line or has_words(said, _LONG)) and _is_own(said, self._said[said]):
                quoting.append((start, end))
        self._claim(number, Source.SAID, *quoting)
        for result in self._results:
            for start, end in _spans(text, result):
                if not any(low <= start < high for low, high in talk):
                    holds = Source.DOCUMENT in self._texts.marks[number][start:end]
                    self._claim(number, Source.METADATA if holds else Source.TOOL, (start, end))
        for value in self._data if spoken and not held else ():
            if next(spoken_in(value), None) is None:
                self._claim(number, Source.DATA, *_spans(text, value))
        for name, span in spoken:
            self._claim(number, Source.HISTORY if talk and name == "tool" else Source.SAID, span)
        return quoting + [span for name, span in spoken if talk and name == "tool"]

    def _mark_history(self, number: int) -> None:
        """The documents of a part of an earlier turn that no search of this request found."""
        marks = self._texts.marks[number]
        counted = {one.match.text for one in self._prompts.placed}
        for match in self._prompts.held.get(number, ()):
            if match.text not in counted:
                marks[match.start : match.end] = bytes([Source.HISTORY]) * (match.end - match.start)

    def _mark_template(self, number: int, text: str) -> None:
        """What a prompt template was filled with: around documents it is what a formatter wrote."""
        marks = self._texts.marks[number]
        for value in dict.fromkeys(self._filled[text]):
            for start, end in _spans(text, value)[:1]:
                if Source.DOCUMENT in marks[start:end] or value in self._known:
                    self._claim(number, Source.METADATA, (start, end))
                elif any(value.strip() == one or (len(one) >= 2 * MIN_VALUE and one in value) for one in self._data):
                    self._claim(number, Source.DATA, (start, end))
                else:  # it does not become a part of the template
                    marks[start:end] = marks[start:end].translate(_UNKNOWN)

    def _mark_tool(self, number: int, turn: Turn, text: str) -> None:
        """A tool's result, without what a model inside it said, and what it repeats of what models wrote into calls."""
        if turn is Turn.EARLIER:
            self._mark_history(number)
        for start, said in self._said_in.get(number, ()):  # an agent's answer brings the grounds of its own prompts
            if not self._in_tools.isdisjoint(self._said[said]):
                self._claim(number, Source.SAID, (start, start + len(said)))
        for line in self._written:
            for written in {line, json.dumps(line, ensure_ascii=False)[1:-1]}:
                self._claim(number, Source.SAID, *_spans(text, written))
        source = Source.METADATA if self._prompts.held.get(number) else Source.TOOL
        self._claim(number, Source.HISTORY if turn is Turn.EARLIER else source, (0, len(text)))

    @cached_property
    def _written(self) -> list[str]:
        """The longer lines that models wrote by themselves into calls of tools."""
        written: dict[str, list[ModelStep]] = {}
        calls = dict.fromkeys(call for own in self._said.values() for call in own)
        replies = [(call, call.reply.arguments) for call in calls if call.reply is not None]
        earlier = [(None, call.arguments) for part, _ in self._prompts.parts.values() for call in part.calls or ()]
        for call, arguments in islice([*replies, *earlier], _MAX_TEXTS):
            for line in (line.strip() for text in texts_in(arguments) for line in text.splitlines()):
                if has_words(line, _LONG):
                    written.setdefault(line, []).extend([] if call is None else [call])
        return [line for line, writers in written.items() if not writers or _is_own(line, writers)]


def _is_own(words: str, calls: Sequence[ModelStep]) -> bool:
    """Whether a model said this by itself: what its prompt held stays evidence if it quotes it."""
    return not all(any(words in part.text for part in call.prompt) for call in calls)


def _spans(text: str, needle: str) -> list[Span]:
    wanted = needle.strip()
    return [(start, start + len(wanted)) for start in occurrences(text, wanted)]


def says_something(text: str) -> bool:
    """Whether a piece is more than a mark, the number of a line, a bracket, a tag, one short word or one before a colon."""
    words = words_of(_tag.sub(" ", text[:_MAX_LOOKED_AT]))
    is_label = text.rstrip().endswith(":")
    return len(words) > 1 or any(word.isdigit() or (len(word) >= MIN_VALUE and not is_label) for word in words)


def has_earlier_summary(tree: RequestTree, prompts: AnswerPrompts) -> bool:
    """Whether a prompt holds a summary that a model wrote before this request: what that rested on is evidence that nobody has."""
    first = next((part.text for part, _ in prompts.parts.values() if part.role != "system"), "")
    summaries = [first] if first[: 2 * len(_SUMMARY)].lstrip().lower().startswith(_SUMMARY) else []
    if called_so := {text.strip() for text in islice(_summaries_in(tree), _MAX_TEXTS)}:
        parts = [part.text for part, turn in prompts.parts.values() if turn is not Turn.SPOKEN]
        summaries += [text for text in called_so if any(text in part for part in parts)]
    if not summaries:
        return False
    last = max((call.started_ns for call in prompts.calls), default=0)
    said = [call.said.strip() for call in tree.answering_models if 0 < call.ended_ns <= last]
    return not all(any(one and (text in one or one in text) for one in said) for text in summaries)


def _summaries_in(tree: RequestTree) -> Iterator[str]:
    """What fields and nodes give out that are called a summary."""
    for step in tree.all_steps:
        if type(step) is not Step:
            continue
        is_called_so = "summar" in step.name.lower()
        for value in (step.inputs, step.output):
            for name, text in leaves_in(value, step.name) if is_called_so or isinstance(value, (dict, list)) else ():
                if isinstance(text, str) and "summar" in name.lower() and len(words_of(text[:500])) >= FROM_CALLER:
                    yield text
