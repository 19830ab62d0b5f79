"""What a search returned, as attributes: ids and scores, and passages only where content is wanted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from ragspan.records import Retrieval, RetrievedContext
from ragspan.telemetry import semconv
from ragspan.telemetry.values import MAX_TEXT_CHARS, bounded, named

MAX_DOCUMENTS = 50
MAX_DOCUMENTS_WITH_CONTENT = 30
"""Three attributes each: together they stay below OpenTelemetry's default limit of 128."""
MAX_PASSAGE_CHARS = 2000


def document_groups(retrieval: Retrieval, *, content: bool) -> Iterator[Mapping[str, object]]:
    """The attributes in groups, the most important first."""
    yield {semconv.GEN_AI_RETRIEVAL_DOCUMENTS: ids_and_scores(retrieval.contexts)}
    if not content:
        return
    yield {
        semconv.INPUT_VALUE: retrieval.query,
        semconv.INPUT_MIME_TYPE: None if retrieval.query is None else semconv.MIME_TEXT,
        semconv.GEN_AI_RETRIEVAL_QUERY_TEXT: retrieval.query,
    }
    for index, context in enumerate(retrieval.contexts[:MAX_DOCUMENTS_WITH_CONTENT]):
        yield {
            semconv.document_attribute(index, "id"): context.id and named(context.id),
            semconv.document_attribute(index, "score"): context.score,
            semconv.document_attribute(index, "content"): bounded(context.text, MAX_PASSAGE_CHARS),
        }


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
