"""What is done once when a request ends: let go of the program's nodes, keep copies of those that are still needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from sys import getsizeof

from ragspan_llama_index.nodes import SeenNode
from ragspan_llama_index.roles import CALL, POSTPROCESSING, SYNTHESIS, TOOL
from ragspan_llama_index.steps import Request, Step
from ragspan_llama_index.streams import Stream

_Key = int | str
"""A node's identity, or its id."""


def settle(request: Request) -> int:
    """Settle all steps of a request; returns the bytes of the texts that it refers to."""
    if request.asks_by_itself or not any(step.role is SYNTHESIS for step in request.steps):
        # Then it may be that what its searches found is what its answer rests on.
        brought = {id(node.item) for step in request.steps for node in step.found or ()}
        _keep_what_was_found([request.root], taken={}, brought=brought)
    sizes: dict[int, int] = {}  # by identity: a text may be referred to from many places
    for step in request.steps:
        _let_go(step, sizes)
    return sum(sizes.values())


def _keep_what_was_found(steps: Sequence[Step], taken: Mapping[_Key, int], brought: set[int]) -> None:
    """From the last to the first. `taken` says how often later steps worked on a node that nobody brought so far.

    What one of several tools or calls works on says nothing about what the others brought. `brought` are the identities of
    all that any step brought: a node is told by its identity, and by its id where a program made it anew.
    """
    left = Counter(taken)
    for step in reversed(steps):
        role = step.role
        found = Counter[_Key]()
        for node in step.found or ():
            found.update(key for key in (id(node.item), node.id) if key is not None)
        step.superseded = any(left[key] > 0 for key in found)
        left -= found
        if not step.superseded:
            for node in step.found or ():
                node.freeze()
        if step.children:
            _keep_what_was_found(step.children, left + found if role is TOOL else {}, brought)
        if role is SYNTHESIS or role is POSTPROCESSING:
            left.update(_key(node, brought) for node in step.given)
        elif role is CALL:
            for node in step.given:
                node.freeze()


def _key(node: SeenNode, brought: set[int]) -> _Key:
    identity = id(node.item)
    return identity if identity in brought or node.id is None else node.id


def _let_go(step: Step, sizes: dict[int, int]) -> None:
    """Let go of the program's objects, and note the bytes of the step's texts, which are known without reading them."""
    step.result = None
    if step.role is SYNTHESIS and step.texts is None:
        for node in step.given:
            node.freeze()
    for node in (*(step.found or ()), *step.given):
        node.item = None
        if not node.frozen:
            node.node = None
        sizes[id(node.text)] = getsizeof(node.text)
    answer = step.answer
    for text in (*(step.texts or ()), *step.fields):
        sizes[id(text)] = getsizeof(text)
    for pairs in (step.asked, step.prompt):
        for _, text in pairs:
            sizes[id(text)] = getsizeof(text)
    for context in step.recorded:
        sizes[id(context.text)] = getsizeof(context.text)
    said = answer.tokens if isinstance(answer, Stream) else [answer, *step.tokens] if step.streams else [answer]
    for words in said:
        sizes[id(words)] = getsizeof(words)
