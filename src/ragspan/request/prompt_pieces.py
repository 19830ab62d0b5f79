"""What stands in the prompts behind an answer beside the documents, piece by piece, and what kind of evidence it is, if any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ragspan.matching import Needles, PromptTexts, Span, occurrences, unescaped, words_of
from ragspan.records import MAX_BACKGROUND, BackgroundKind
from ragspan.request.contents import PayloadMessage, texts_in
from ragspan.request.documents import SeenDocuments
from ragspan.request.prompt_provenance import Behind, Turn
from ragspan.request.said_in import lines_of_models, memories_in, schemas_in, spoken_in, within, without
from ragspan.request.short_texts import Filled, long_enough
from ragspan.request.tree import ModelStep, RequestTree, SearchStep, Step, ToolStep
from ragspan.safe_copy import Snapshot

_LONG_ARGUMENT = 5
"""Words of an argument that a result repeats wherever it has them."""
_MIN_ECHO = 3
_MIN_VALUE = 4
_ENDS = " \t\n.,;!?"
"""What a document before a piece may end with."""
_BARE_TAG = re.compile(r"</?[A-Za-z][\w.-]{0,40}/?>")
_MAX_LOOKED_AT = 200_000
_MAX_TEXTS = 200
_MAX_WANTED = 500_000
_MAX_SEARCHED = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Words in one piece of a prompt."""

    text: str
    kind: BackgroundKind | None
    """None if it is not known what it is; then it is not evidence, but may be a document."""


class Pieces:
    """Reads the prompts behind an answer.

    Args:
        tree: the request.
        seen: its documents.
        behind: the prompts, with the documents that are in them.
        question: the user's own words.
        filled: what prompt templates were filled with.
    """

    def __init__(self, tree: RequestTree, seen: SeenDocuments, behind: Behind, question: str, filled: Filled) -> None:
        trees = tree.chain_of_requests
        steps = [step for each in trees for step in each.steps]
        self._seen, self._behind, self._question = seen, behind, question
        models = [step for step in steps if isinstance(step, ModelStep)]
        self._asking = {around for run in models for around in run.around()}
        """The steps that ask a model."""
        self._tools = [step for step in steps if isinstance(step, ToolStep)]
        self._searches: dict[Step, list[SearchStep]] = {}
        """By the steps around them."""
        for search in (step for step in steps if isinstance(step, SearchStep)):
            for around in search.around():
                self._searches.setdefault(around, []).append(search)
        self._filled = filled
        self._documents = {text for each in seen.all for text in (each.text, each.document.written)}
        self._values: dict[int, tuple[set[str], set[str]]] = {}
        """By the list of what a template was filled with, the documents, which were looked for already, and all else."""
        last = max((run.started_ns for run in behind.runs), default=0)
        earlier = [run for run in models if 0 < run.ended_ns <= last][-_MAX_TEXTS:]
        self._said = _Said((run.said, run) for run in earlier)
        self._said_texts = Needles(self._said.by)
        self._asked = [each.text for state in (tree.inputs, tree.asked_before) for each in _people_in(state)]
        written = ((text, run) for run in earlier if run.reply for text in texts_in(run.reply.arguments))
        self._written = _Said(islice(written, _MAX_TEXTS))
        self._in_vain = [text for step in steps if step.inputs == [] and isinstance(text := step.output, str)]
        self._in_vain += [
            tool.result for tool in self._tools if self._found_nothing(tool) and isinstance(tool.result, str)
        ]

    def all(self) -> Iterator[Piece]:
        """The pieces of all prompts, in prompt order, as many as a record keeps."""
        left = MAX_BACKGROUND + 1
        for number, (message, turn) in self._behind.parts.items():
            for piece in () if turn is Turn.SPOKEN else self._of_part(number, message, turn):
                if _says_something(piece.text):
                    yield piece if piece.kind is None else replace(piece, text=piece.text[:left])
                    left -= len(piece.text) if piece.kind is not None else 0
                if left <= 0:
                    return

    def _of_part(self, number: int, message: PayloadMessage, turn: Turn) -> Iterator[Piece]:
        text = self._behind.texts.parts[number]
        if message.role == "tool":
            yield from self._of_tool(number, message, turn, text)
            return
        free = self._behind.texts.free(number)
        spoken = [] if number in self._behind.holding and message.role == "ai" else list(spoken_in(text))
        tool_spans = (
            [span for role, span in spoken if role == "tool"] if {role for role, _ in spoken} & {"ai", "human"} else []
        )
        results = sorted(span for tool in self._tools_with_words() for span in _spans(text, str(tool.result)))
        said_before = list(lines_of_models(text, self._said_texts, self._said.is_own))
        kept = without(free, [*(span for _, span in spoken), *said_before])
        kept = without(kept, [span for asked in self._asked for span in _spans(text, asked)])
        memories = list(memories_in(text))
        rest = without(kept, [*results, *memories, *schemas_in(text)])
        matches = self._behind.holding.get(number, ())
        quoted = {match for match in matches if not without([match.span], said_before)}  # by a model: its own words
        of_documents = [match.span for match in matches if match not in quoted]
        for each in results:
            yield from self._pieces(text, within(kept, each), "metadata" if within(of_documents, each) else "tool")
        yield from self._pieces(
            text, [span for each in memories for span in within(without(kept, results), each)], "other"
        )
        if turn is Turn.EARLIER:
            counted = {each.text for each in self._behind.found}
            held = [match.text for match in matches if match.text not in counted]
            yield from (Piece(text=each, kind="history") for each in held)
        elif text in self._filled:
            yield from self._of_template(number, text, rest)
        elif of_documents:
            yield from self._pieces(text, rest, "other")
        elif not (message.role == "system" and self._seen.empty_search):
            yield from self._pieces(text, rest, None)
        yield from self._pieces(text, [span for each in tool_spans for span in within(free, each)], "history")

    def _of_template(self, number: int, text: str, rest: Sequence[Span]) -> Iterator[Piece]:
        """What a prompt template was filled with: around documents it is what a formatter wrote."""
        matches = self._behind.holding.get(number, ())
        of_documents = [match.span for match in matches]
        given = self._filled[text]
        if id(given) not in self._values:
            own = set(long_enough(given))
            self._values[id(given)] = own & self._documents, own - self._documents
        own, others = self._values[id(given)]
        values = [match.span for match in matches if match.text in own]
        values += [span for value in others for span in _spans(text, value)[:1]]
        for value in values:
            has_documents = any(within(of_documents, value))
            yield from self._pieces(text, within(rest, value), "metadata" if has_documents else None)
        bare = [span for span in of_documents if not any(within([span], value) for value in values)]
        if bare:  # the template itself writes documents
            around = self._around(text, min(bare)[0], max(end for _, end in bare))
            yield from self._pieces(text, within(without(rest, values), around), "metadata")

    def _around(self, text: str, start: int, end: int) -> Span:
        """The lines of documents, with those before them that have something of their metadata."""
        start = text.rfind("\n", 0, start) + 1
        after = text.find("\n", end)
        known = {str(value) for each in self._behind.found for value in each.entry.document.metadata.values()}
        known = {value for value in known if len(value) >= _MIN_VALUE}
        while start > 0:
            before = text.rfind("\n", 0, start - 1) + 1
            if not any(value in text[before:start] for value in known):
                break
            start = before
        return start, len(text) if after < 0 else after

    # Tools

    def _of_tool(self, number: int, message: PayloadMessage, turn: Turn, text: str) -> Iterator[Piece]:
        held = self._behind.holding.get(number, ())
        tool = next((each for each in self._tools if each.call_id == message.call_id is not None), None)
        if tool is not None and (self._found_nothing(tool) or (number in self._behind.said and tool in self._asking)):
            return
        if turn is Turn.EARLIER:
            counted = {each.text for each in self._behind.found}
            free = without([(0, len(text))], [match.span for match in held if match.text in counted])
        elif held:
            free = self._behind.texts.free(number)
        else:
            free = [(0, len(text))]
        kind: BackgroundKind = "history" if turn is Turn.EARLIER else "metadata" if held else "tool"
        yield from self._pieces(text, self._without_arguments(text, free, message), kind)

    def _without_arguments(self, text: str, free: Sequence[Span], message: PayloadMessage) -> Sequence[Span]:
        """A result without what it repeats of its call's arguments, and of longer ones that models wrote."""
        calls = [call for part, _ in self._behind.parts.values() for call in part.calls or ()]
        own = [text for call in calls if call.id == message.call_id for text in texts_in(call.arguments)]
        own += [text for tool in self._tools if tool.call_id == message.call_id for text in texts_in(tool.inputs)]
        given = dict.fromkeys([*own, *self._written.by])
        long = [each for each in given if len(each.split(None, _LONG_ARGUMENT)) >= _LONG_ARGUMENT][:_MAX_TEXTS]
        kept = free
        while long and len(text) <= _MAX_LOOKED_AT:
            prompts = PromptTexts([text])
            found = [each for each, matches in zip(long, prompts.find(long, order=[0]), strict=True) if matches]
            quoted = {each for each in found if each not in own and not self._written.is_own(each)}
            long = [each for each in found if each not in quoted]
            if not quoted:
                kept = [piece for span in free for piece in within(prompts.free(0), span)] if found else free
                break
        short = without(kept, [span for each in dict.fromkeys(own) for span in _spans(text, each)])
        if 2 * _count(text, short) <= _count(text, free):
            kept = short
        return [each for each in kept if kept is free or _count(text, [each]) >= _MIN_ECHO]

    def _tools_with_words(self) -> list[ToolStep]:
        """The tools whose results are evidence wherever they stand."""
        return [
            tool
            for tool in self._tools[-_MAX_TEXTS:]
            if isinstance(tool.result, str) and len(tool.result.strip()) >= _MIN_VALUE and not tool.shown
            if not self._found_nothing(tool) and tool not in self._asking
        ]

    def _found_nothing(self, tool: ToolStep) -> bool:
        """Whether a tool is a search that came back empty."""
        inside = self._searches.get(tool, ())
        return bool(inside) and not any(step.found for step in inside) and tool not in self._asking

    # Pieces

    def _pieces(self, text: str, spans: Iterable[Span], kind: BackgroundKind | None) -> Iterator[Piece]:
        if kind is None:
            about = (value for entry in self._seen.all for value in entry.document.metadata.values())
            own = dict.fromkeys(str(value) for value in about if type(value) in {str, int, float})
            known = [*self._in_vain, *own][:_MAX_TEXTS]
            spans = without(list(spans), [span for each in known for span in _spans(text, each)])
        is_data = text.lstrip()[:1] in {"{", "["}
        for start, end in sorted(spans):
            piece = text[start:end].lstrip(_ENDS).strip()
            yield Piece(text=unescaped(piece) if is_data else piece, kind=kind)


class _Said:
    """What models said."""

    def __init__(self, said: Iterable[tuple[str, ModelStep]]) -> None:
        self.by: dict[str, list[ModelStep]] = {}
        """The calls that said it, by each text."""
        self._own: dict[str, bool] = {}
        for text, run in said:
            if words := text.strip():
                self.by.setdefault(words, []).append(run)

    def is_own(self, words: str) -> bool:
        """Whether a model said this by itself: what its prompt held stays evidence if it quotes it.

        To search all prompts takes long. So ask it only of what stands in another place, as little does.
        """
        if words not in self._own:
            self._own[words] = not all(any(words in part.text for part in run.prompt) for run in self.by[words])
        return self._own[words]


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
    if not 0 < len(wanted) <= min(len(text), _MAX_WANTED) or len(text) > _MAX_SEARCHED:
        return []
    return [(start, start + len(wanted)) for start in occurrences(text, wanted)]


def _count(text: str, spans: Iterable[Span]) -> int:
    return sum(len(words_of(text[start:end])[0]) for start, end in spans)


def _says_something(text: str) -> bool:
    """Whether a piece is more than a mark, a number of a line, a bracket, a tag or one word before a colon."""
    plain = _BARE_TAG.sub(" ", text[:_MAX_LOOKED_AT])
    words = words_of(plain)[0]
    if len(words) == 1 and plain.rstrip().endswith(":"):
        return False
    return len(words) > 1 or any(len(word) >= _MIN_VALUE or word.isdigit() for word in words)
