"""Where support was lost: which documents a search found that the model did not read whole, and whether one supports a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ragspan.exceptions import JudgeError
from ragspan.matching import PromptTexts
from ragspan.outcomes import Cause, Score
from ragspan.records import RagRecord, RetrievedContext

_MOST = 100
"""Documents that are looked at. If there are more, a claim that none of them supports has no cause."""
_LEAST_PART = 20
"""Characters that a context needs to be a part of the document that has its words; fewer may be in any document."""
_LONGEST_WAIT = 20.0
"""Seconds that a score may wait for its causes."""


async def with_causes(score: Score, record: RagRecord, claims: Sequence[str] | None) -> Score:
    """The score, with its causes and with what was lost in its explanation, where it fails and its searches are known.

    If everything that was retrieved reached the prompt whole, no judge is asked. Else the embedded judge reads the documents in this
    process: what the program masked or cut before the prompt stands in the results of its searches. `claims` are those that the
    contexts do not support; None if the metric takes no claims apart.
    """
    if score.label != "fail" or record.contexts is None or not (record.retrievals or record.rerankings):
        return score
    unseen = unseen_documents(record)
    if not unseen:
        return replace(score, causes=tuple(Cause(kind="unsupported", claim=claim) for claim in claims or (None,)))
    from ragspan.judges.screen import OverlapJudge

    texts = [text for text, _ in unseen[:_MOST]]
    try:
        found = await asyncio.wait_for(OverlapJudge().find_support(record, claims, texts), _LONGEST_WAIT)
    except (JudgeError, asyncio.TimeoutError):
        found = []
    causes = []
    for claim, document in found:
        if document is not None:
            causes.append(replace(unseen[document][1], claim=claim))
        elif len(unseen) <= _MOST:
            causes.append(Cause(kind="unsupported", claim=claim))
    scored = replace(score, causes=tuple(causes))
    return replace(scored, explanation=" ".join(filter(None, [scored.losses, scored.explanation])) or None)


def unseen_documents(record: RagRecord) -> list[tuple[str, Cause]]:
    """The texts of searches and rerankings that no model read whole, each once with how it was lost; dropped documents come first.

    What stands in any prompt of the request, or in its background, was read: also where its words did not become the answer, as in a
    summariser's. A place counts only once: what a context covers is not a part of a document that overlaps with it.
    """
    contexts = [context for context in record.contexts or () if context.text.strip()]
    everything = "\n".join(_plain(context.text) for context in contexts)
    # What cuts a text often says so.
    shown = {_plain(context.text).removesuffix("...").removesuffix("…").rstrip(): context for context in contexts}
    found: dict[str, tuple[str, Cause]] = {}
    retrieved: list[tuple[str | None, int, RetrievedContext]]
    retrieved = [(one.name, *each) for one in record.retrievals for each in enumerate(one.contexts, start=1)]
    retrieved += [(None, *each) for one in record.rerankings for each in enumerate(one.given, start=1)]
    for search, place, document in retrieved:
        text = _plain(document.text)
        if not text or text in found or text in everything:
            continue
        # A context is a part of it by the same id or, where one has none, by its words.
        parts = {
            part: context
            for part, context in shown.items()
            if (context.id == document.id if context.id and document.id else len(part) >= _LEAST_PART and part in text)
        }
        if parts and not any(context.truncated or len(part) < len(text) for part, context in parts.items()):
            continue  # a step rewrote it
        lost = Cause(kind="lost_before_prompt", document=place, search=search, step=_dropped_by(record, document))
        found[text] = document.text, replace(lost, kind="cut", step=None) if parts else lost
    prompts = [message.text for model in record.generations for message in model.prompt]
    shown_texts = list(dict.fromkeys([*prompts, *(one.text for one in record.background)]))
    seen = PromptTexts(shown_texts, apart=record.question or "")
    matches = seen.find([*(one.text for one in contexts), *(text for text, _ in found.values())])[len(contexts) :]
    unread = [
        (text, replace(lost, kind="cut", step=None) if places else lost)
        for (text, lost), places in zip(found.values(), matches, strict=True)
        if not any(place.whole for place in places)
    ]
    return sorted(unread, key=lambda one: one[1].kind == "cut")


def _dropped_by(record: RagRecord, document: RetrievedContext) -> str | None:
    """The first reranker that was given the document and did not hand it on."""

    def is_among(others: Sequence[RetrievedContext]) -> bool:
        return any(one.id == document.id if one.id and document.id else one.text == document.text for one in others)

    steps = sorted(record.rerankings, key=lambda step: step.started_ns)
    return next((step.name for step in steps if is_among(step.given) and not is_among(step.contexts)), None)


def _plain(text: str) -> str:
    return " ".join(text.split())
