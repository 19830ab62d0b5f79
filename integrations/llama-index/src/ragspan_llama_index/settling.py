"""What is done once when a request ends: let go of the program's nodes, keep copies of those that are still needed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ragspan_llama_index.nodes import SeenNode, ids_of
from ragspan_llama_index.roles import Role
from ragspan_llama_index.steps import Step
from ragspan_llama_index.streams import Stream


def settle(root: Step) -> int:
    """Settle all steps of a request; returns the bytes of the texts that it refers to."""
    return _settle([root], taken=set())


def _settle(steps: Sequence[Step], taken: set[str]) -> int:
    """From the last to the first. `taken` are the nodes that later steps worked on.

    What one of several tools or calls works on says nothing about what the others brought.
    """
    size = 0
    for step in reversed(steps):
        role = step.role
        step.result = None
        if step.found:
            found = ids_of(step.found)
            step.superseded = not taken.isdisjoint(found)
            size += _release(step.found, needed=not step.superseded)
        if step.children:
            inner = taken | found if role is Role.TOOL and step.found else taken if role is Role.TOOL else set()
            size += _settle(step.children, inner)
        if role is Role.SYNTHESIS or role is Role.POSTPROCESSING:
            taken = taken | ids_of(step.given)
        if step.given:
            size += _release(step.given, needed=role is Role.CALL or (role is Role.SYNTHESIS and step.texts is None))
        size += _size_of_texts(step)
    return size


def _release(nodes: Iterable[SeenNode], *, needed: bool) -> int:
    """Freeze the nodes, or let go of them; returns the bytes of their texts where these count."""
    size = 0
    for node in nodes:
        if needed:
            node.freeze()
        elif not node.frozen:
            node.node = None
        size += sys.getsizeof(node.text)
    return size


def _size_of_texts(step: Step) -> int:
    """A text's size is known without reading it."""
    size = sum(map(sys.getsizeof, step.texts)) if step.texts else 0
    answer = step.answer
    if isinstance(answer, Stream):
        return size + sum(map(sys.getsizeof, answer.tokens))
    return size if answer is None else size + sys.getsizeof(answer)
