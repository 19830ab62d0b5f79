"""The background that judges are shown: evidence that reached the model and is not a document.

For programs whose search no callback shows the prompts themselves are evidence, if they ask for it (`unknown_contexts="prompt"`). Text of
the system, of models and of users is none. In a message with the role of the user, a program's text cannot be distinguished from the
user's but for the question, nor instructions from documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ragspan.judges.selection import select
from ragspan.records import Background, BackgroundKind, RagRecord, RetrievedContext

MAX_SHOWN = 8_000
"""Characters of background that a judge gets."""
_LEAST_WORDS = 8
_SAID = re.compile(
    r"^[ \t]*(?:AI|Assistant|Bot|Human|User)[ \t]*:.*(?:\n(?!\s*$|[ \t]*[A-Z]\w{0,20}[ \t]*:).*)*", re.MULTILINE
)
"""What a line that begins with a speaker says, up to a blank line or another line of this form."""


def shown_background(record: RagRecord, most: int = MAX_SHOWN) -> tuple[Background, ...]:
    """The record's background if it fits, else the parts that share the response's words, in prompt order."""
    texts = [one.text for one in record.background]
    return tuple(
        Background(kind=record.background[piece.text].kind, text=text)
        for piece in select(texts, record.response or "", most)
        if (text := texts[piece.text][piece.start : piece.end]).strip()
    )


def as_evidence(record: RagRecord, shown: Sequence[Background]) -> RagRecord:
    """The record as a judge reads it that knows contexts only: the background is among them, after the documents."""
    further = tuple(RetrievedContext(text=one.text) for one in shown)
    return replace(record, contexts=(*(record.contexts or ()), *further), background=())


def with_prompt_evidence(record: RagRecord) -> RagRecord:
    """The record with the evidence of its prompts as background, where it has no documents and all prompts were seen."""
    has_documents = any(context.text.strip() for context in record.contexts or ())
    if has_documents or not record.generations or not all(model.prompt for model in record.generations):
        return record
    said = [record.question or ""]  # and what models said before each prompt
    found: dict[str, BackgroundKind] = {}
    for model in record.generations:
        # What follows the last reply of a model is of this turn.
        ends = [at for at, one in enumerate(model.prompt, 1) if one.role == "assistant" and not one.tool_requests]
        for place, message in enumerate(model.prompt):
            is_this_turn, text = place >= max(ends, default=0), message.text
            if message.role == "user" and is_this_turn:
                for words in filter(None, map(str.strip, said)):
                    text = text.replace(words, " ")
                text = _SAID.sub("", text).strip()
            elif message.role != "tool":
                continue
            if len(text.split()) >= _LEAST_WORDS:
                kind: BackgroundKind = "other" if message.role == "user" else "tool" if is_this_turn else "history"
                found.setdefault(text, kind)
        said.append("" if model.reply is None else model.reply.text)
    if not found:
        return record
    background = tuple(Background(text=text, kind=kind) for text, kind in found.items())
    return replace(record, background=background, background_truncated=False, background_is_prompt=True)
