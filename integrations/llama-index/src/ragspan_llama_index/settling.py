"""What is done once when a request ends: let go of the program's nodes, keep copies of those that are still needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragspan_llama_index.nodes import SeenNode, ids_of
from ragspan_llama_index.roles import Role
from ragspan_llama_index.steps import Step


def settle(step: Step) -> None:
    """Settle a step and all inside it."""
    _release(step.given, needed=step.role is Role.SYNTHESIS and step.texts is None and not step.ended_ns)
    _settle_children(step.children, taken=set())


def _settle_children(steps: Sequence[Step], taken: set[str]) -> None:
    """From the last to the first. `taken` are the nodes that later steps worked on.

    What one of several tools or calls works on says nothing about what the others brought.
    """
    taken = set(taken)
    for step in reversed(steps):
        found = step.found or ()
        step.superseded = not taken.isdisjoint(ids_of(found))
        step.result = None
        if step.role is Role.TOOL:
            _settle_children(step.children, taken | ids_of(found))
        else:
            _settle_children(step.children, set())
        if step.role in (Role.SYNTHESIS, Role.POSTPROCESSING):
            taken |= ids_of(step.given)
        _release(found, needed=not step.superseded)
        _release(step.given, needed=step.role is Role.SYNTHESIS and step.texts is None and not step.ended_ns)


def _release(nodes: Iterable[SeenNode], *, needed: bool) -> None:
    for node in nodes:
        if needed:
            node.freeze()
        elif not node.frozen:
            node.node = None
