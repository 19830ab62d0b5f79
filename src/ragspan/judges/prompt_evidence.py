"""Evidence from the prompts themselves, for programs whose search no callback shows: `unknown_contexts="prompt"`.

Text of the system, of models and of users is not evidence. In a message with the role of the user, a program's text cannot be
distinguished from the user's but for the question, nor instructions from documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from ragspan.messages import Message
from ragspan.records import Background, BackgroundKind, RagRecord

_LEAST_WORDS = 8
_SPEAKER = r"(?:AI|Assistant|Bot|Human|User)"
_SAID = re.compile(rf"^[ \t]*{_SPEAKER}[ \t]*:.*(?:\n(?!\s*$|[ \t]*[A-Z]\w{{0,20}}[ \t]*:).*)*", re.MULTILINE)
"""What a line that begins with a speaker says, up to a blank line or another line of this form."""


def with_prompt_evidence(record: RagRecord) -> RagRecord:
    """The record with the evidence of its prompts as background, where it has no documents and all prompts were seen."""
    has_documents = any(context.text.strip() for context in record.contexts or ())
    if has_documents or not record.generations or not all(model.prompt for model in record.generations):
        return record
    said = [model.reply.text for model in record.generations if model.reply is not None and model.reply.text.strip()]
    found: dict[str, BackgroundKind] = {}
    for model in record.generations:
        for message, kind in _evidence(model.prompt):
            text = message.text
            if kind == "other":
                text = _without(text, (record.question or "", *said))
            if len(text.split()) >= _LEAST_WORDS:
                found.setdefault(text, kind)
    if not found:
        return record
    background = tuple(Background(text=text, kind=kind) for text, kind in found.items())
    return replace(record, background=background, background_truncated=False, background_is_prompt=True)


def _evidence(prompt: Sequence[Message]) -> Iterator[tuple[Message, BackgroundKind]]:
    """Results of tools, and the messages of this turn that have the user's role."""
    is_reply = [message.role == "assistant" and not message.tool_requests for message in prompt]
    this_turn = len(prompt) - len(list(takewhile(lambda is_said: not is_said, reversed(is_reply))))
    for place, message in enumerate(prompt):
        if message.role == "tool":
            yield message, "tool" if place >= this_turn else "history"
        elif message.role == "user" and place >= this_turn:
            yield message, "other"


def _without(text: str, said: Iterable[str]) -> str:
    for own in filter(str.strip, said):
        text = text.replace(own.strip(), " ")
    return _SAID.sub("", text).strip()
