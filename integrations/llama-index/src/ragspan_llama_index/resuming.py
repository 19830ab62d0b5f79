"""Finds the beginning of a resumed run among the interrupted runs of this process; runs in the worker.

The saved context of a run does not name it. The beginning is known by what of it comes back in a prompt or in the answer:
its question, a node that it found, or words that it wrote.
"""

from __future__ import annotations

from itertools import islice

from ragspan_llama_index.steps import Request

_MAX_NODES = 1_000


def join_beginning(request: Request) -> None:
    """Put what was noted before the interruption in front of what was noted after it, once."""
    earlier, request.earlier = request.earlier, ()
    told = _told(request)
    rated = [(_signs(each, told), each) for each in earlier if each.root.name == request.root.name]
    most = max((signs for signs, _ in rated), default=0)
    if most == 0:
        return
    beginning = [each for signs, each in rated if signs == most][-1]
    join_beginning(beginning)
    request.root.children[:0] = beginning.root.children
    request.root.asked = request.root.asked or beginning.root.asked


def _told(request: Request) -> str:
    prompts = [text for step in request.steps for _, text in step.prompt]
    return "\n".join([*prompts, request.root.answer_text() or ""])


def _signs(request: Request, told: str) -> int:
    found = (node.text for step in request.steps for node in step.found or ())
    nodes = any(text.strip() and text in told for text in islice(found, _MAX_NODES))
    question = any(text.strip() and text in told for _, text in request.root.asked)
    said = any((text := step.answer_text()) and " " in text and text in told for step in request.steps)
    return nodes + question + said
