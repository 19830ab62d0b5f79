"""Evidence from the prompts themselves, for programs whose search no callback shows: `unknown_contexts="prompt"`.

Text of the system, of models and of users is not evidence. In a message with the role of the user, a program's text cannot be
distinguished from the user's but for the question, nor instructions from documents.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ragspan.records import Background, BackgroundKind, RagRecord

_LEAST_WORDS = 8
_SAID = re.compile(
    r"^[ \t]*(?:AI|Assistant|Bot|Human|User)[ \t]*:.*(?:\n(?!\s*$|[ \t]*[A-Z]\w{0,20}[ \t]*:).*)*", re.MULTILINE
)
"""What a line that begins with a speaker says, up to a blank line or another line of this form."""


def with_prompt_evidence(record: RagRecord) -> RagRecord:
    """The record with the evidence of its prompts as background, where it has no documents and all prompts were seen."""
    has_documents = any(context.text.strip() for context in record.contexts or ())
    if has_documents or not record.generations or not all(model.prompt for model in record.generations):
        return record
    replies = [model.reply.text for model in record.generations if model.reply is not None]
    said = [text.strip() for text in (record.question or "", *replies) if text.strip()]
    found: dict[str, BackgroundKind] = {}
    for model in record.generations:
        # What follows the last reply of a model is of this turn.
        ends = [at for at, one in enumerate(model.prompt, 1) if one.role == "assistant" and not one.tool_requests]
        for place, message in enumerate(model.prompt):
            is_this_turn, text = place >= max(ends, default=0), message.text
            if message.role == "user" and is_this_turn:
                for words in said:
                    text = text.replace(words, " ")
                text = _SAID.sub("", text).strip()
            elif message.role != "tool":
                continue
            if len(text.split()) >= _LEAST_WORDS:
                kind: BackgroundKind = "other" if message.role == "user" else "tool" if is_this_turn else "history"
                found.setdefault(text, kind)
    if not found:
        return record
    background = tuple(Background(text=text, kind=kind) for text, kind in found.items())
    return replace(record, background=background, background_truncated=False, background_is_prompt=True)
