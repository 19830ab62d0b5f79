"""What a search returned, and what a reranker made of it, as attributes: ids and scores, and contexts only where content is wanted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from ragspan.records import Reranking, Retrieval, RetrievedContext
from ragspan.telemetry import semconv
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.values import MAX_TEXT_CHARS, bounded, named

MAX_DOCUMENTS = 50
"""Two OpenInference attributes each: together they stay below OpenTelemetry's default limit of 128."""
MAX_DOCUMENTS_WITH_CONTENT = 30
"""Three attributes each."""
MAX_PASSAGE_CHARS = 2000


def document_groups(retrieval: Retrieval, options: EmitterOptions) -> Iterator[Mapping[str, object]]:
    """The attributes in groups, the most important first."""
    query = retrieval.query if options.content.allows("spans", hidden_as="inputs") else None
    yield {semconv.GEN_AI_RETRIEVAL_DOCUMENTS: ids_and_scores(retrieval.contexts)}
    if query is not None:
        yield {
            semconv.INPUT_VALUE: query,
            semconv.INPUT_MIME_TYPE: semconv.MIME_TEXT,
            semconv.GEN_AI_RETRIEVAL_QUERY_TEXT: query,
        }
    yield from _openinference_documents("retrieval.documents", retrieval.contexts, options)


def reranked_groups(reranking: Reranking, options: EmitterOptions) -> Iterator[Mapping[str, object]]:
    """The same for a reranker: what it left first, then what it was given."""
    query = reranking.query if options.content.allows("spans", hidden_as="inputs") else None
    yield {
        semconv.RERANKER_TOP_K: reranking.top_k,
        semconv.RERANKER_MODEL_NAME: reranking.model and named(reranking.model),
        semconv.RERANKER_QUERY: query,
        semconv.INPUT_VALUE: query,
        semconv.INPUT_MIME_TYPE: None if query is None else semconv.MIME_TEXT,
    }
    yield from _openinference_documents("reranker.output_documents", reranking.contexts, options)
    yield from _openinference_documents("reranker.input_documents", reranking.given, options)


def _openinference_documents(
    among: semconv.DocumentList, contexts: tuple[RetrievedContext, ...], options: EmitterOptions
) -> Iterator[Mapping[str, object]]:
    content = options.content.allows("spans", hidden_as="documents")
    if content or options.openinference:
        most = MAX_DOCUMENTS_WITH_CONTENT if content else MAX_DOCUMENTS
        for index, context in enumerate(contexts[:most]):
            yield _openinference_document(among, index, context, content=content)


def _openinference_document(
    among: semconv.DocumentList, index: int, context: RetrievedContext, *, content: bool
) -> Mapping[str, object]:
    """A document of which at least one thing is said: a tool that reads a list closes its gaps, and moves what follows."""
    document = {
        semconv.document_attribute(index, "id", among): context.id and named(context.id),
        semconv.document_attribute(index, "score", among): context.score,
        semconv.document_attribute(index, "content", among): (
            bounded(context.text, MAX_PASSAGE_CHARS) if content else None
        ),
    }
    is_blank = not content and not context.id and context.score is None
    rank = {semconv.document_attribute(index, "metadata", among): json.dumps({"rank": index})}
    return document | (rank if is_blank else {})


def ids_and_scores(contexts: tuple[RetrievedContext, ...]) -> str:
    """A JSON list with an object a document, in rank order; as many as one attribute holds.

    A document that has neither id nor score still has its (empty) object, so that places stay ranks.
    """
    documents = [_id_and_score(context) for context in contexts[:MAX_DOCUMENTS]]
    while len(text := json.dumps(documents)) > MAX_TEXT_CHARS:  # cut by the bound on text, it would be no JSON
        documents = documents[: len(documents) * MAX_TEXT_CHARS // len(text)]
    return text


def _id_and_score(context: RetrievedContext) -> dict[str, str | float]:
    document: dict[str, str | float] = {}
    if context.id is not None:
        document["id"] = named(context.id)
    if context.score is not None and math.isfinite(context.score):
        document["score"] = float(context.score)
    return document
