"""Where the support of claims was lost: what was retrieved is compared with what reached the prompt.

A metric asks this when its score fails, and only for what the contexts do not support. If everything that was retrieved
reached the prompt whole, the cause is known without a question to a judge. Else the embedded judge reads the documents in
this process: what the program masked or cut before the prompt stands in the results of its searches.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragspan.exceptions import JudgeError
from ragspan.matching import PromptTexts
from ragspan.outcomes import Cause, CauseKind, Score
from ragspan.records import RagRecord, RetrievedContext

if TYPE_CHECKING:
    from ragspan.judges.screen import OverlapJudge

_MOST = 100
"""Documents that are looked at. If there are more, a claim that none of them supports has no cause."""
_LEAST_PART = 40
"""Characters that a context needs to be a part of the document that has its words; fewer may be in any document."""
_LONGEST_WAIT = 20.0
"""Seconds that a score may wait for its causes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnseenDocument:
    """A document that was retrieved, and of which the model saw nothing, or only a part."""

    text: str
    place: int
    """From 1, in what the search found, or in what the reranker was given."""
    search: str | None
    is_cut: bool
    """The model saw a part."""
    step: str | None
    """The reranker that dropped it."""

    def cause_of(self, claim: str) -> Cause:
        """Why the contexts do not support a claim that this document supports."""
        kind: CauseKind = "cut" if self.is_cut else "lost_before_prompt"
        return Cause(kind=kind, claim=claim, document=self.place, search=self.search, step=self.step)


@functools.cache
def _seeker() -> OverlapJudge:
    from ragspan.judges.screen import OverlapJudge

    return OverlapJudge()


async def with_causes(score: Score, record: RagRecord, claims: Sequence[str] | None) -> Score:
    """The score, with its causes and with what was lost in its explanation, where it fails and its searches are known.

    Args:
        score: of a metric that needs the contexts' support.
        record: what was scored.
        claims: those that the contexts do not support; None if the metric takes no claims apart.
    """
    if score.label != "fail" or record.contexts is None or not (record.retrievals or record.rerankings):
        return score
    unseen = unseen_documents(record)
    if not unseen:
        return replace(score, causes=tuple(Cause(kind="unsupported", claim=claim) for claim in claims or (None,)))
    texts = [document.text for document in unseen[:_MOST]]
    try:
        found = await asyncio.wait_for(_seeker().find_support(record, claims, texts), _LONGEST_WAIT)
    except (JudgeError, asyncio.TimeoutError):
        found = []
    causes = tuple(
        Cause(kind="unsupported", claim=one.claim) if one.document is None else unseen[one.document].cause_of(one.claim)
        for one in found
        if one.document is not None or len(unseen) <= _MOST
    )
    scored = replace(score, causes=causes)
    return replace(scored, explanation=" ".join(filter(None, [scored.losses, scored.explanation])) or None)


def unseen_documents(record: RagRecord) -> list[UnseenDocument]:
    """The documents of searches and rerankers that no model read whole, each once; dropped documents come first."""
    shown = {_plain(context.text): context for context in record.contexts or () if context.text.strip()}
    everything = "\n".join(shown)
    found: dict[str, UnseenDocument] = {}
    for search, place, document in _retrieved(record):
        text = _plain(document.text)
        if not text or text in found or text in everything:
            continue
        parts = [part for part, context in shown.items() if _is_part(context, part, document, text)]
        if parts and not any(shown[part].truncated or len(part) < len(text) for part in parts):
            continue  # a step rewrote it
        step = None if parts else _dropped_by(record, document)
        found[text] = UnseenDocument(text=document.text, place=place, search=search, is_cut=bool(parts), step=step)
    return sorted(_unread(record, list(found.values())), key=lambda document: document.is_cut)


def _unread(record: RagRecord, documents: Sequence[UnseenDocument]) -> Iterator[UnseenDocument]:
    """Those that do not stand in any prompt of the request, nor in its background; cut ones where a part does.

    A prompt whose words did not become the answer, such as a summariser's, counts, too. So does a place only once: what
    a context covers is not a part of a document that overlaps with it.
    """
    prompts = [message.text for model in record.generations for message in model.prompt]
    seen = PromptTexts(list(dict.fromkeys([*prompts, *(one.text for one in record.background)])))
    contexts = [context.text for context in record.contexts or ()]
    matches = seen.find([*contexts, *(document.text for document in documents)])[len(contexts) :]
    for document, places in zip(documents, matches, strict=True):
        if not any(place.whole for place in places):
            yield replace(document, is_cut=True, step=None) if places else document


def _retrieved(record: RagRecord) -> Iterator[tuple[str | None, int, RetrievedContext]]:
    """Every document with its place, and the name of the search that found it if that is known."""
    for search in record.retrievals:
        yield from ((search.name, place, document) for place, document in enumerate(search.contexts, start=1))
    for reranking in record.rerankings:
        yield from ((None, place, document) for place, document in enumerate(reranking.given, start=1))


def _is_part(context: RetrievedContext, part: str, document: RetrievedContext, text: str) -> bool:
    """Whether a context is a part of a document: it has the same id or, where one has none, words of it."""
    if context.id is not None and document.id is not None:
        return context.id == document.id
    return len(part) >= _LEAST_PART and part in text


def _dropped_by(record: RagRecord, document: RetrievedContext) -> str | None:
    """The first reranker that was given the document and did not hand it on."""

    def is_among(others: Sequence[RetrievedContext]) -> bool:
        by_id = [one.id == document.id for one in others if one.id is not None and document.id is not None]
        return any(by_id) or any(one.text == document.text for one in others if one.id is None or document.id is None)

    steps = sorted(record.rerankings, key=lambda step: step.started_ns)
    return next((step.name for step in steps if is_among(step.given) and not is_among(step.contexts)), None)


def _plain(text: str) -> str:
    return " ".join(text.split())
