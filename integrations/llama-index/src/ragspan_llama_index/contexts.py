"""Which contexts LlamaIndex itself names for an answer: its synthesizers are handed their nodes.

Everything else is the common rules': `ragspan.request.grounds`. Runs in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ragspan.records import RetrievedContext
from ragspan.request import (
    Document,
    Grounds,
    ModelStep,
    SearchStep,
    SeenDocuments,
    Step,
    SynthesisStep,
    ToolStep,
    context_of,
    context_of_seen,
    contexts_behind,
    grounds_of,
    originals_of,
    unescaped,
    with_recorded,
)
from ragspan_llama_index.classes import SPEAKING
from ragspan_llama_index.reading import Reading
from ragspan_llama_index.step_facts import SeenNode

Contexts = list[RetrievedContext]

_HEAD = 24  # characters of a text's beginning that show that it is there
_UNREADABLE = {"picture", "provider_search"}


class Provenance:
    """Where the answer of a request comes from.

    Args:
        reading: the request, whose tree is finished.
        question: the user's own words, which are not a context even if they quote one.
    """

    def __init__(self, reading: Reading, question: str | None) -> None:
        self._reading = reading
        self._tree = reading.tree
        self._question = question
        self._seen = SeenDocuments(reading.tree)
        self._ranks = _ranks_in(reading)
        self._known: dict[Step, Contexts | None] = {}

    def grounds(self, response: str | None) -> Grounds:
        """What an answer rests on: by the common rules, but for the contexts that a synthesizer names.

        Args:
            response: what the caller got.
        """
        common = grounds_of(self._tree, self._seen, self._question, response, context_of_seen)
        is_common = common.contexts_unknown in _UNREADABLE or (self._reading.others and common.contexts)
        root = self._reading.root
        if is_common or not any(isinstance(writer, SynthesisStep) for writer in _writers_of(self._reading, root)):
            return common
        contexts = with_recorded(self._tree, self._of(root) or ())
        return common._replace(contexts=contexts, contexts_unknown=None)

    def evidence(self, contexts: Iterable[RetrievedContext] | None) -> tuple[RetrievedContext, ...]:
        """The contexts behind those of these contexts that were themselves answers."""
        reading = self._reading
        speakers = (step for step in reading.walk(reading.root) if reading.facts_of(step).role in SPEAKING)
        said = ((step, (reading.text_of(step) or "").strip()) for step in speakers)
        of_steps = (
            (text, partial(self._of, step)) for step, text in said if " " in text or not isinstance(step, ModelStep)
        )
        return originals_of(contexts or (), of_steps)

    def _of(self, step: Step) -> Contexts | None:
        """The contexts that the answer of a step rests on; None if that cannot be seen."""
        if step not in self._known:
            found = [self._behind(writer) for writer in _writers_of(self._reading, step)]
            self._known[step] = found[0] if len(found) == 1 else _joined(found)
        return self._known[step]

    def _behind(self, writer: Step) -> Contexts | None:
        """The contexts that a synthesizer was given, or that stand in the prompts behind a model's words; None if these cannot be seen."""
        if isinstance(writer, SynthesisStep):
            return self._given(self._innermost(writer))
        inner = self._reading.walk(writer) if isinstance(writer, ModelStep) else ()
        calls = [step for step in inner if isinstance(step, ModelStep) and step.messages]
        if not calls:
            return None
        return contexts_behind(self._tree, self._seen, self._question, calls[-1:], context_of_seen)

    def _given(self, synthesis: SynthesisStep) -> Contexts:
        facts = self._reading.facts[synthesis]
        texts = facts.texts
        if facts.has_base("Generation"):
            return []  # it asks the model the bare question
        if texts is None:
            return [self._context(node, node.text_for_model()) for node in facts.given]
        inner = self._reading.walk(synthesis)
        prompt = "\n".join(part.text for step in inner for part in step.messages)
        shown = [(text, False) for text in texts]
        if prompt and facts.has_base("SimpleSummarize"):
            shown = list(_beginnings(texts, prompt))
        nodes: Sequence[SeenNode | None] = facts.given  # what is cut off is cut off at the end
        if len(texts) != len(nodes):  # a program handed over the texts of nodes, and not the nodes
            known = {
                text: node
                for step in self._reading.walk(self._reading.root)
                for node in self._reading.facts_of(step).found or ()
                for text in {node.text, node.later_text}
            }
            nodes = [known.get(text) for text, _ in shown]
        return [
            RetrievedContext(text=text, truncated=is_cut)
            if node is None
            else replace(self._context(node, text), truncated=is_cut)
            for node, (text, is_cut) in zip(nodes, shown, strict=False)
        ]

    def _innermost(self, synthesis: SynthesisStep) -> SynthesisStep:
        """The synthesis that a program's own one handed its work to, and whose answer it gave."""
        origin = self._reading.facts[synthesis].origin
        return self._innermost(origin) if isinstance(origin, SynthesisStep) else synthesis

    def _context(self, node: SeenNode, text: str) -> RetrievedContext:
        return context_of(Document(text, node.id, node.metadata), rank=self._ranks.get(node.id), score=node.score)


def _joined(parts: Iterable[Contexts | None]) -> Contexts | None:
    found = [part for part in parts if part is not None]
    return _once(context for part in found for context in part) if found else None


def _once(contexts: Iterable[RetrievedContext]) -> Contexts:
    """Each context once, where it came first. Contexts may share an id: the parts that an engine cuts a node into."""
    found: dict[tuple[str | None, str], RetrievedContext] = {}
    for context in contexts:
        found.setdefault((context.id, context.text), context)
    return list(found.values())


def _beginnings(texts: Sequence[str], prompt: str) -> Iterator[tuple[str, bool]]:
    """What a prompt shows of texts that were joined and cut off at the end: each text, and whether it was cut."""
    held, end = _letters(unescaped(prompt)), 0  # of some releases, the prompt has them as a list
    for text in texts:
        letters = _letters(text)
        start = held.find(letters[:_HEAD], end)
        if start < 0:
            return
        pairs = enumerate(zip(letters, held[start : start + len(letters)], strict=False))
        shown = next((place for place, (one, other) in pairs if one != other), len(letters))
        ends = [place for place, letter in enumerate(text, 1) if not letter.isspace()]
        yield (text, False) if shown == len(letters) else (text[: ends[shown - 1]], True)
        end = start + shown


def _letters(text: str) -> str:
    return "".join(text.split())


def _ranks_in(reading: Reading) -> Mapping[str | None, int]:
    """By a node's id, its place in the result of the first search that brought it."""
    ranks: dict[str | None, int] = {}
    for step in reading.walk(reading.root):
        if isinstance(step, SearchStep):
            for place, node in enumerate(reading.facts[step].found or ()):
                ranks.setdefault(node.id, place)
    ranks.pop(None, None)
    return ranks


# Which inner steps wrote an answer

_word = re.compile(r"\w+")


def _writers_of(reading: Reading, step: Step) -> list[Step]:
    """The syntheses and models whose words a step returned, several if these make it up; the step itself where none is known."""
    is_one = isinstance(step, (SynthesisStep, ModelStep))
    inner = [] if is_one else _inner_writers_of(reading, step)
    return [writer for each in inner for writer in _writers_of(reading, each)] or [step]


def _inner_writers_of(reading: Reading, step: Step) -> list[Step]:
    """The inner step whose result or words a call returned, or the several whose words make up its answer.

    The streamed words of some models are not reported: such a model wrote what no other step said.
    """
    facts = reading.facts_of(step)
    if facts.role is None:  # a `ragspan.capture` block: all engines inside, and the last model that was asked by itself
        inside = reading.inside[step]
        models = [child for child in inside if isinstance(child, ModelStep)]
        return [*(child for child in inside if reading.facts[child].role in {"call", "synthesis"}), *models[-1:]]
    if facts.origin is not None:
        return [facts.origin]
    speakers = list(speakers_in(reading, step))
    words = {speaker: _bare(reading.text_of(speaker)) for speaker in speakers}
    answer = _bare(reading.text_of(step))
    if not speakers or not answer:
        return speakers[-1:]
    same = [one for one, said in words.items() if (answer in said if isinstance(one, ModelStep) else answer == said)]
    if same:
        return same[-1:]
    # A single word of a model, a grade or a choice, stands anywhere.
    parts = [
        one
        for one, said in words.items()
        if said in answer and (" " in said or (bool(said) and not isinstance(one, ModelStep)))
    ]
    unheard = [speaker for speaker in speakers if reading.facts[speaker].streams and not words[speaker]]
    if unheard and 2 * sum(len(words[part]) for part in parts) < len(answer):
        return unheard[-1:]
    return parts or speakers[-1:]


def _bare(text: str | None) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_word.findall((text or "").casefold()))


def speakers_in(reading: Reading, step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in reading.inside[step]:
        if reading.facts[child].role in SPEAKING:
            yield child
        elif isinstance(child, ToolStep):
            yield from speakers_in(reading, child)
