"""Which contexts an answer rests on: the nodes of the synthesizer that wrote it, else those in the model's prompt.

An inner engine's answer in a prompt stands for the contexts that it rests on. Runs in the worker.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ragspan.matching import unescaped
from ragspan.records import RetrievedContext
from ragspan.runs import (
    Document,
    Grounds,
    ModelStep,
    RequestTree,
    SeenDocument,
    SeenDocuments,
    context_of,
    context_of_seen,
    grounds_of,
    prompts_behind,
)
from ragspan_llama_index.classes import SPEAKING
from ragspan_llama_index.steps import SeenNode, Step

Contexts = list[RetrievedContext]

_MAX_MODELS = 1000
_HEAD = 24  # characters of a text's beginning that show that it is there
_UNREADABLE = {"picture", "provider_search"}
_CLOSED = frozenset({"search", "postprocessing", "synthesis"})
"""What models say inside of these is not used outside."""


class Provenance:
    """Where the answer of a request comes from.

    Args:
        root: the request's outermost step.
        models: the calls of models, by the identities of their steps.
        question: the user's own words, which are not a context even if they quote one.
    """

    def __init__(self, root: Step, models: Mapping[int, ModelStep], question: str | None) -> None:
        self._root = root
        self._models = models
        self._question = question
        self._ranks = _ranks_in(root)
        self._open = list(_open_steps(root))
        self._known: dict[int, Contexts | None] = {}
        self._reads_prompts = False

    def grounds(self, tree: RequestTree, response: str | None, *, is_mixed: bool) -> Grounds:
        """What an answer rests on: by the common rules, but for the contexts that a synthesizer or a search tells.

        Args:
            tree: the request.
            response: what the caller got.
            is_mixed: another framework did a part of it, of which its steps tell.
        """
        common = grounds_of(tree, SeenDocuments(tree), self._question, response, context_of_seen)
        told = self.contexts()
        is_unheard = any(not run.said and run.reply is None for run in tree.answering_models)
        own = common._replace(from_model=None if is_unheard and not common.from_model else common.from_model)
        is_common = common.contexts_unknown in _UNREADABLE or (not told and self._reads_prompts)
        if told is None or is_common or (is_mixed and common.contexts):
            return own
        return own._replace(contexts=told, contexts_unknown=None)

    def contexts(self) -> tuple[RetrievedContext, ...] | None:
        """The contexts in prompt order; `()` when none reached the model, None when they could not be observed."""
        found = self._of(self._root)
        known = {known for context in found or () for known in (context.text, context.id)}
        named = [context for step in self._root.walk() for context in step.recorded]
        recorded = [context for context in named if known.isdisjoint({context.text, context.id} - {None})]
        said = any("recorded" in vars(step) for step in self._root.walk())
        return None if found is None and not said else (*(found or ()), *recorded)

    def evidence(self, contexts: Iterable[RetrievedContext] | None) -> tuple[RetrievedContext, ...]:
        """The contexts behind those of these contexts that were themselves answers."""
        speakers = (step for step in self._root.walk() if step.role in SPEAKING)
        answers = [(said, step) for step in speakers if (said := (step.answer_text() or "").strip())]
        waiting = list(contexts or ())
        given = {context.text for context in waiting}
        known, leaves = {*given}, list[RetrievedContext]()
        for context in waiting:
            text = context.text
            own = [self._of(step) or [] for said, step in answers if said in text and _is_answer(said, step, text)]
            # A step's own context that happens to hold its answer was not made from it.
            behind = [each for some in own if all(each.text != text for each in some) for each in some]
            if not behind and text not in given:
                leaves.append(context)
            for each in behind:
                if each.text not in known:
                    known.add(each.text)
                    waiting.append(each)
        return tuple(leaves)

    @functools.cached_property
    def _nodes(self) -> Mapping[str, list[tuple[SeenNode, str]]]:
        return _nodes_in(self._root)

    def _of(self, step: Step) -> Contexts | None:
        """The contexts that the answer of a step rests on."""
        if id(step) not in self._known:
            self._known[id(step)] = self._found_for(step)
        return self._known[id(step)]

    def _found_for(self, step: Step) -> Contexts | None:
        if step.role == "synthesis":
            return self._given(_innermost(step))
        if step.role == "model":
            tools = [inner for inner in step.walk() if inner.role == "tool"]
            told = _joined(self._of(tool) if tool.found is None else self._brought_by(tool) for tool in tools)
            if told is not None:
                return told  # a tool that brings nothing only makes an object of what the model says
        writers = [] if step.role is None else writers_of(step)
        if not writers:
            return self._prompted(step) if step.prompt else self._brought(step)
        found = [
            self._brought(step) if writer.role == "model" and not _prompts_of(writer) else self._of(writer)
            for writer in writers
        ]
        return found[0] if len(found) == 1 else _joined(found)

    def _prompted(self, model: Step) -> Contexts | None:
        """The contexts in the prompts behind what a model said; None if no search was observed."""
        self._reads_prompts = True
        run = self._models[id(model)]
        told: dict[str, list[Step]] = {}
        for step in self._open:
            if 0 < step.ended_ns <= run.started_ns and _is_told(step):
                told.setdefault(step.answer_text() or "", []).append(step)
        texts = dict.fromkeys((*self._nodes, *told))
        documents = [SeenDocument(Document(text, None, {}), None, None) for text in texts]
        models = [self._models[id(step)] for step in self._open if step.role == "model"][-_MAX_MODELS:]
        queries = [text for step in self._root.walk() if step.role == "search" for _, text in step.asked]
        behind = prompts_behind(documents, models, [run], queries, self._question)
        if not behind.is_complete:
            return None  # a part of the contexts would make true answers look made up
        parts: list[Contexts | None] = [[] if any(map(_shows_nodes, self._root.walk())) else None]
        prompts, place = "\n".join({part.text: None for each in (run, *models) for part in each.prompt}), 0
        for _, shown, is_whole, text in behind.found:
            nodes = self._nodes.get(text, [])
            for node, written in nodes[: max(1, prompts.count(text)) if nodes[1:] else 1]:
                place = prompts.find(written, max(place, 0))  # mostly they are in the same order
                place = prompts.find(written) if place < 0 else place
                parts.append([self._context(node, shown if place < 0 else written, truncated=not is_whole)])
            parts += map(self._of, told.get(text, ()))
        return _joined(parts)

    def _brought(self, step: Step) -> Contexts | None:
        """What the searches inside a step brought, less what a later step left out; None when no search was observed."""
        asked = [child for child in step.children if child.role == "model" and _prompts_of(child)]
        if step.role is None and asked:  # a block of the program's, and its last model tells what it was given
            others = [child for child in step.children if child.role in {"call", "synthesis", None}]
            return _joined([*map(self._brought_by, others), self._of(asked[-1])])
        parts: list[tuple[set[Any], Contexts | None]] = []
        for child in step.children:
            if child.role in {"synthesis", "postprocessing"}:
                taken = {key for node in child.given for key in (node.identity, node.id)}
                parts = [(keys, found if taken.isdisjoint(keys) else []) for keys, found in parts]
            keys = {key for node in child.found or () for key in (node.identity, node.id) if key is not None}
            parts.append((keys, self._brought_by(child)))
        # The program may say what it found, where no search was seen.
        said = [self._context(node, node.text_for_model()) for node in step.given] or None
        return _joined([*(part for _, part in parts), said])

    def _brought_by(self, step: Step) -> Contexts | None:
        if step.role in {"call", "synthesis"}:
            return self._of(step)
        if step.role is None:
            return list(step.recorded)
        if step.found is None:
            return self._brought(step) if step.role in {"tool", "model"} else None
        nodes = [node for node in step.found if not node.describes_tool()]
        return [self._context(node, node.text_for_model()) for node in nodes] if nodes or not step.found else None

    def _given(self, step: Step) -> Contexts:
        texts = step.texts
        if step.has_base("Generation"):
            return []  # it asks the model the bare question
        if texts is None:
            return [self._context(node, node.text_for_model()) for node in step.given]
        prompt = "\n".join(part.text for inner in _prompts_of(step) for part in inner.prompt)
        shown = [(text, False) for text in texts]
        if prompt and step.has_base("SimpleSummarize"):
            shown = list(_beginnings(texts, prompt))
        if len(texts) == len(step.given):
            pairs = zip(step.given, shown, strict=False)  # what is cut off is cut off at the end
            return [self._context(node, text, truncated=is_cut) for node, (text, is_cut) in pairs]
        return [
            self._context(self._nodes[text][0][0], text, truncated=is_cut)
            if text in self._nodes  # a program handed over the text of a node, and not the node
            else RetrievedContext(text=text, truncated=is_cut)
            for text, is_cut in shown
        ]

    def _context(self, node: SeenNode, text: str, *, truncated: bool = False) -> RetrievedContext:
        context = context_of(Document(text, node.id, node.metadata), rank=self._ranks.get(node.id), score=node.score)
        return replace(context, truncated=True) if truncated else context


def _is_answer(said: str, step: Step, text: str) -> bool:
    """Whether a text that holds what a step said holds its answer. A model's word, such as a grade, stands anywhere."""
    return step.role != "model" or " " in said or said == text.strip()


def _innermost(synthesis: Step) -> Step:
    """The synthesis that a program's own one handed its work to, and whose answer it gave."""
    if synthesis.origin is not None and synthesis.origin.role == "synthesis":
        return _innermost(synthesis.origin)
    return synthesis


def _shows_nodes(step: Step) -> bool:
    """Whether it searched for contexts, and not for tools, or was given some."""
    if step.found is None:
        return bool(step.given)
    return not step.found or not all(node.describes_tool() for node in step.found)


def _joined(parts: Iterable[Contexts | None]) -> Contexts | None:
    found = [part for part in parts if part is not None]
    return _once(context for part in found for context in part) if found else None


def _once(contexts: Iterable[RetrievedContext]) -> Contexts:
    """Each context once, where it came first. Contexts may share an id: the parts that an engine cuts a node into."""
    found: dict[tuple[str | None, str], RetrievedContext] = {}
    for context in contexts:
        found.setdefault((context.id, context.text), context)
    return list(found.values())


def _prompts_of(model: Step) -> list[Step]:
    """The calls inside a step that show what a model was given."""
    return [inner for inner in model.walk() if inner.prompt]


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


def _ranks_in(root: Step) -> Mapping[str | None, int]:
    """By a node's id, its place in the result of the first search that brought it."""
    ranks: dict[str | None, int] = {}
    for step in root.walk():
        if step.role == "search":
            for place, node in enumerate(step.found or ()):
                ranks.setdefault(node.id, place)
    ranks.pop(None, None)
    return ranks


# What may stand in a prompt


def _nodes_in(root: Step) -> Mapping[str, list[tuple[SeenNode, str]]]:
    """The nodes by what stands of them in any prompt, each with the text that the framework writes for models.

    A program's own prompt may hold a node's text alone, without metadata. Nodes of one text may have several ids, and each
    id stands once.
    """
    nodes: dict[str, dict[str | None, tuple[SeenNode, str]]] = {}
    for step in root.walk():
        shown: Sequence[SeenNode] = step.given if step.role in {"call", "synthesis"} else step.found or ()
        texts = step.texts or ()
        for node, text in zip_longest(shown, texts if len(texts) == len(shown) else ()):
            written = text or node.text_for_model()
            own = [each for each in dict.fromkeys((node.later_text, node.text)) if each.strip()]
            for each in () if node.describes_tool() else own if any(one in written for one in own) else [*own, written]:
                of_text = nodes.setdefault(each, {})
                if step.role != "search" or node.id not in of_text:  # a later search may find what it did not keep
                    of_text[node.id] = node, written if each in written else each
    return {text: [*of_text.values()] for text, of_text in nodes.items()}


def _open_steps(step: Step) -> Iterator[Step]:
    """The steps inside this one whose words may be used outside of them."""
    for child in step.children:
        yield child
        if child.role not in _CLOSED:
            yield from _open_steps(child)


def _is_told(step: Step) -> bool:
    """Whether an inner engine answered, or a tool that asked one or a model; what a model says itself is a draft."""
    is_engine = step.role in {"call", "synthesis"} or (step.role == "tool" and any(speakers_in(step)))
    return is_engine and bool((step.answer_text() or "").strip())


# Which inner steps wrote an answer

_word = re.compile(r"\w+")


def writers_of(step: Step) -> list[Step]:
    """The inner step whose result or words a call returned, or the several whose words make up its answer.

    The streamed words of some models are not reported: such a model wrote what no other step said.
    """
    if step.origin is not None:
        return [step.origin]
    speakers = list(speakers_in(step))
    answer = _bare(step.answer_text())
    if not speakers or not answer:
        return speakers[-1:]
    same = [speaker for speaker in speakers if _said(speaker, answer)]
    if same:
        return same[-1:]
    parts = [speaker for speaker in speakers if _is_part(speaker, answer)]
    unheard = [speaker for speaker in speakers if speaker.streams and not speaker.answer_text()]
    if unheard and 2 * sum(len(_bare(part.answer_text())) for part in parts) < len(answer):
        return unheard[-1:]
    return parts or speakers[-1:]


def _bare(text: str | None) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_word.findall((text or "").casefold()))


def speakers_in(step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in step.children:
        if child.role in SPEAKING:
            yield child
        elif child.role == "tool":
            yield from speakers_in(child)


def _said(speaker: Step, answer: str) -> bool:
    said = _bare(speaker.answer_text())
    return answer in said if speaker.role == "model" else answer == said


def _is_part(speaker: Step, answer: str) -> bool:
    """Whether its words stand in the answer. A single word of a model, a grade or a choice, stands anywhere."""
    said = _bare(speaker.answer_text())
    return said in answer and (" " in said or (bool(said) and speaker.role != "model"))
