"""Which passages an answer rests on: what was given to the synthesizer that wrote it, else what was found for it.

Runs in the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ragspan.records import RetrievedContext
from ragspan_llama_index.nodes import SeenNode
from ragspan_llama_index.passages import as_context, ranks_in
from ragspan_llama_index.roles import Role
from ragspan_llama_index.steps import Step

Contexts = list[RetrievedContext]


class Provenance:
    """Where the answer of a request comes from.

    Args:
        root: the request's outermost step.
    """

    def __init__(self, root: Step) -> None:
        self._root = root
        self._ranks = ranks_in(root)

    def contexts(self) -> tuple[RetrievedContext, ...] | None:
        """The passages in prompt order; `()` when none reached the model, None when they could not be observed."""
        found = self._of(self._root)
        known = {known for context in found or () for known in (context.text, context.id)}
        named = [context for step in self._root.walk() for context in step.recorded]
        recorded = [context for context in named if known.isdisjoint({context.text, context.id} - {None})]
        return None if found is None and not recorded else (*(found or ()), *recorded)

    def evidence(self) -> tuple[RetrievedContext, ...]:
        """The passages behind contexts that were themselves answers."""
        return tuple(_once(self._evidence(self._root)))

    # Contexts

    def _of(self, step: Step) -> Contexts | None:
        if step.role is Role.SYNTHESIS:
            return self._given(_innermost(step))
        writers = _writers(step)
        if not writers:
            return self._brought(step)
        if len(writers) == 1:
            return self._of(writers[0])
        return _once(context for writer in writers for context in self._of(writer) or ())

    def _brought(self, step: Step) -> Contexts | None:
        """What all searches inside a step brought, in their order; None when there were none to be seen."""
        parts = [self._brought_by(child) for child in step.children]
        if step.given:  # the program says what it found, and no search was seen
            parts.append([self._context(node, node.text_for_model()) for node in step.given])
        found = [part for part in parts if part is not None]
        return _once(context for part in found for context in part) if found else None

    def _brought_by(self, step: Step) -> Contexts | None:
        if step.role in {Role.CALL, Role.SYNTHESIS}:
            return self._of(step)
        if step.role is None:
            return list(step.recorded)
        if step.found is None:
            return self._brought(step) if step.role is Role.TOOL else None
        passages = [] if step.superseded else [node for node in step.found if not node.describes_tool()]
        chose_tools = len(step.found) > 0 and all(node.describes_tool() for node in step.found)
        return None if chose_tools else [self._context(node, node.text_for_model()) for node in passages]

    def _given(self, step: Step) -> Contexts:
        texts = step.texts
        if texts is None:
            return [self._context(node, node.text_for_model()) for node in step.given]
        if len(texts) == len(step.given):
            return [self._context(node, text) for node, text in zip(step.given, texts, strict=True)]
        return [RetrievedContext(text=text) for text in texts]

    def _context(self, node: SeenNode, text: str) -> RetrievedContext:
        return as_context(node, text, rank=self._ranks.get(node.id))

    # Evidence

    def _evidence(self, step: Step) -> Contexts:
        if step.role is Role.SYNTHESIS:
            return []
        writers = _writers(step)
        if not writers:
            return [leaf for call in _calls(step.children) for leaf in self._evidence(call)]
        leaves: Contexts = []
        for writer in writers:
            leaves += self._evidence(writer)
            if writer.role is Role.SYNTHESIS:
                leaves += self._behind(self._of(writer) or [], _calls(step.children, ended_before=writer.started_ns))
        return leaves

    def _behind(self, contexts: Sequence[RetrievedContext], calls: Iterable[Step]) -> Contexts:
        """What the calls rest on whose answers are among these contexts."""
        leaves: Contexts = []
        for call in calls:
            answer = (call.answer_text() or "").strip()
            own = self._of(call) or []
            known = {context.text for context in own}
            # A call's own passage that happens to hold its answer was not made from it.
            if answer and any(answer in context.text and context.text not in known for context in contexts):
                leaves += self._evidence(call) or own
        return leaves


def _writers(step: Step) -> list[Step]:
    """The calls and syntheses inside a call that wrote its answer; none where a model did, or the program itself."""
    writers = [] if step.role is None else _sources(step)
    return [] if any(writer.role is Role.MODEL for writer in writers) else writers


def _sources(step: Step) -> list[Step]:
    """The inner step whose result a call handed on, or whose words it gave, or the several that its words consist of."""
    if step.origin is not None:
        return [step.origin]
    speakers = list(_speakers(step))
    if not speakers:
        return []
    last = speakers[-1]
    answer = (step.answer_text() or "").strip()
    if not answer or last.streams:  # the words of a model's stream cannot be seen
        return [last]
    same = [speaker for speaker in speakers if _said(speaker, answer)]
    if same:
        return same[-1:]
    return [speaker for speaker in speakers if speaker.role is not Role.MODEL and _is_part(speaker, answer)] or [last]


def _innermost(synthesis: Step) -> Step:
    """The synthesis that a program's own one handed its work to, and whose answer it gave."""
    if synthesis.origin is not None and synthesis.origin.role is Role.SYNTHESIS:
        return _innermost(synthesis.origin)
    return synthesis


def _speakers(step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in step.children:
        if child.role in {Role.CALL, Role.SYNTHESIS, Role.MODEL}:
            yield child
        elif child.role is Role.TOOL:
            yield from _speakers(child)


def _said(speaker: Step, answer: str) -> bool:
    text = (speaker.answer_text() or "").strip()
    return answer in text if speaker.role is Role.MODEL else answer == text


def _is_part(speaker: Step, answer: str) -> bool:
    text = (speaker.answer_text() or "").strip()
    return bool(text) and text in answer


def _calls(steps: Iterable[Step], *, ended_before: int | None = None) -> Iterator[Step]:
    """The calls among these steps and inside their searches and tools."""
    for step in steps:
        if step.role is not Role.CALL:
            yield from _calls(step.children, ended_before=ended_before)
        elif ended_before is None or 0 < step.ended_ns <= ended_before:
            yield step


def _once(contexts: Iterable[RetrievedContext]) -> Contexts:
    """Each passage once, where it came first."""
    found: dict[str, RetrievedContext] = {}
    for context in contexts:
        found.setdefault(context.text if context.id is None else context.id, context)
    return list(found.values())
