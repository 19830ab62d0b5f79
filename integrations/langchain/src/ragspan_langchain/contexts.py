"""Which documents an answer rests on: those that reached the prompts behind it."""

from __future__ import annotations

from ragspan.records import RetrievedContext, plain_entries
from ragspan_langchain.lineage import documents_behind, reached_model
from ragspan_langchain.runs import SeenDocument, Trace

_REMOTE = {"RemoteRunnable", "RemoteGraph"}
"""Steps that call a program elsewhere, which may search."""


def contexts_of(trace: Trace, question: str | None, response: str | None) -> tuple[RetrievedContext, ...] | None:
    """The documents in prompt order; `()` if none reached the prompt, None if they could not be observed.

    None also where it would take too long to say: a part of the contexts would make true answers look made up.
    """
    documents, is_complete = documents_behind(trace, question, response)
    found: dict[str, RetrievedContext] = {}
    for document, text, is_whole in documents:
        if text not in found:
            found[text] = as_context(document, text, truncated=not is_whole)
    for context in trace.recorded:
        found.setdefault(context.text, context)
    if not is_complete:
        return None
    if found:
        return tuple(found.values())
    if trace.unreadable or any(run.name in _REMOTE for run in trace.runs):
        return None
    observed = trace.documents or trace.empty_search or trace.carried_documents
    return () if observed or not reached_model(trace) else None


def as_context(entry: SeenDocument, text: str, *, truncated: bool = False) -> RetrievedContext:
    source = entry.metadata.get("source")
    return RetrievedContext(
        text=text,
        id=entry.id,
        rank=entry.rank,
        score=entry.score,
        source=source if isinstance(source, str) else None,
        truncated=truncated,
        metadata=plain_entries(entry.metadata),
    )
