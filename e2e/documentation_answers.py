"""Answers about ragspan's own documentation, good and bad: some sentences of a passage, and inventions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ragspan import RagRecord, RetrievedContext

_HEADING = re.compile(r"^#+\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_LEAST_CHARACTERS = 200
_MOST_CHARACTERS = 900
_CONTEXTS = 4

_REFUSAL = "I cannot answer that: the passages do not mention it."
_INVENTION = (
    "Every score is checked by 12 reviewers in Zurich, who vote twice a day and keep their notes for 90 days. "
    "Customers on the Platinum plan may appeal to Professor Lindqvist."
)
_KINDS = ("good", "good", "incomplete", "good", "half good", "good", "refused", "good", "invented")
"""Of one answer after another."""


def answered_questions() -> Iterator[RagRecord]:
    """A question about each part of the documentation, answered from that part; the parts after it are contexts as well."""
    passages = _passages()
    for number, (_, title, text) in enumerate(passages):
        found = [*passages[number:], *passages][:_CONTEXTS]
        yield RagRecord(
            question=f"What is there to know about {title[:1].lower()}{title[1:]}?",
            contexts=[
                RetrievedContext(text=f"{title}: {text}", id=f"passage-{number + rank + 1}", source=source, rank=rank)
                for rank, (source, title, text) in enumerate(found)
            ],
            response=_response(text, _KINDS[number % len(_KINDS)]),
            record_id=f"documentation-{number + 1}",
        )


def _passages() -> list[tuple[str, str, str]]:
    """File, title and text of each part, without tables, lists and code."""
    passages = []
    for file in sorted((Path(__file__).parents[1] / "docs").glob("*.md")):
        for section in _HEADING.split(file.read_text(encoding="utf-8")):
            title, _, body = section.partition("\n")
            paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", body)]
            prose = " ".join(one for one in paragraphs if one[:1].isalpha()).replace("`", "").replace("*", "")
            if len(prose) >= _LEAST_CHARACTERS:
                passages.append((file.name, title.strip(), prose[:_MOST_CHARACTERS]))
    return passages


def _response(text: str, kind: str) -> str:
    sentences = _SENTENCE_END.split(text)
    good = " ".join(sentences[:3])
    responses = {
        "good": good,
        "incomplete": " ".join(sentences[0].rstrip(".").split()[:7]).rstrip(",;:") + ".",
        "half good": f"{good} {_INVENTION}",
        "refused": _REFUSAL,
        "invented": _INVENTION,
    }
    return responses[kind]
