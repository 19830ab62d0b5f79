"""Outcomes as Phoenix annotations: pure functions."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ragspan.outcomes import MetricFailure, Score, ScoredRecord, Usage
from ragspan.records import SpanAnchor
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.score_attributes import annotator_kind
from ragspan.telemetry.values import error_type, named
from ragspan_phoenix.passages import places_of, verdicts_on_passages

Kind: TypeAlias = Literal["span_annotations", "document_annotations"]
"""Which of Phoenix's lists it belongs to: also the last part of the address that it is sent to."""

_OVERHEAD = 500  # bytes that an annotation takes beside its text


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """One row for Phoenix."""

    kind: Kind
    span_id: str
    """As 16 hexadecimal digits."""
    name: str
    identifier: str
    body: bytes
    """The whole row as JSON: Phoenix replaces a row that it has by the one that it gets."""
    position: int | None = None
    """0-based, among the documents of the span; None for an annotation of the span itself."""

    @property
    def key(self) -> Hashable:
        return self.kind, self.span_id, self.name, self.identifier, self.position

    @property
    def size(self) -> int:
        return len(self.body) + _OVERHEAD


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What is written of an outcome."""

    identifier: str
    documents: bool
    failures: bool
    content: ContentPolicy


def annotations_of(scored: ScoredRecord, span: SpanAnchor, contents: Contents) -> Iterator[Annotation]:
    """An annotation of the answer's span for each score, and of the documents of its searches for each verdict on one."""
    for metric, outcome in scored.outcomes.items():
        if isinstance(outcome, Score):
            yield _of_score(scored, span, metric, outcome, contents)
            if contents.documents and any(scored.retrieval_spans):
                yield from _of_documents(scored, metric, outcome, contents)
        elif isinstance(outcome, MetricFailure) and contents.failures:
            yield _of_failure(scored, span, metric, outcome, contents)


def _of_score(scored: ScoredRecord, span: SpanAnchor, metric: str, score: Score, contents: Contents) -> Annotation:
    return _annotation(
        "span_annotations",
        span,
        metric,
        identifier=_identifier(scored, contents),
        annotator_kind=annotator_kind(score),
        result={
            "score": float(score.value),
            "label": score.label,
            "explanation": contents.content.explanation(score),
        },
        metadata=_metadata(scored, score),
    )


def _of_failure(
    scored: ScoredRecord, span: SpanAnchor, metric: str, failure: MetricFailure, contents: Contents
) -> Annotation:
    return _annotation(
        "span_annotations",
        span,
        metric,
        identifier=_identifier(scored, contents),
        annotator_kind="CODE",
        result={"label": "error"},
        # Never the message: it may quote what a provider or a parser quoted of the user's text.
        metadata={"record_id": named(scored.record.record_id), "error_type": error_type(failure.error_type)},
    )


def _of_documents(scored: ScoredRecord, metric: str, score: Score, contents: Contents) -> Iterator[Annotation]:
    """Phoenix takes no identifier here, so one name stands once on a document."""
    verdicts = list(verdicts_on_passages(score))
    places = places_of(scored.record) if verdicts else []
    for verdict in verdicts:
        for search, position in places[verdict.index] if 0 <= verdict.index < len(places) else ():
            span = scored.retrieval_spans[search]
            if span is None or not span.sampled:
                continue
            yield _annotation(
                "document_annotations",
                span,
                metric,
                position=position,
                annotator_kind=annotator_kind(score),
                result={
                    "score": verdict.value,
                    "label": verdict.label,
                    "explanation": contents.content.explanation_of_verdict(verdict.explanation),
                },
                metadata=_without_nothing(
                    {"record_id": named(scored.record.record_id), "judge": score.judge and named(score.judge)}
                ),
            )


def _annotation(
    kind: Kind,
    span: SpanAnchor,
    metric: str,
    *,
    annotator_kind: str,
    result: Mapping[str, Any],
    metadata: Mapping[str, Any],
    identifier: str = "",
    position: int | None = None,
) -> Annotation:
    span_id, name = format(span.span_id, "016x"), named(metric)
    row: dict[str, Any] = {
        "span_id": span_id,
        "name": name,
        "annotator_kind": annotator_kind,
        "identifier": identifier,
        "result": _without_nothing(result),
        "metadata": metadata,
    }
    if position is not None:
        row["document_position"] = position
    body = _encode(row).encode()
    return Annotation(kind=kind, span_id=span_id, name=name, identifier=identifier, body=body, position=position)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _identifier(scored: ScoredRecord, contents: Contents) -> str:
    """One a record: two answers under one span keep their scores apart, and an answer that is scored anew replaces its own."""
    return named(f"{contents.identifier}:{scored.record.record_id}")


def _metadata(scored: ScoredRecord, score: Score) -> dict[str, Any]:
    return _without_nothing(
        {
            "record_id": named(scored.record.record_id),
            "judge": score.judge and named(score.judge),
            "threshold": score.threshold,
            "prompt_version": score.prompt_version and named(score.prompt_version),
            "fallback": score.fallback and named(score.fallback),
            "late": scored.late or None,
            "refusal": scored.refusal or None,
            "details": {named(name): float(figure) for name, figure in score.details.items()} or None,
            "usage": _usage(score.usage),
        }
    )


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None or not usage.requests:
        return None
    return _without_nothing(
        {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "usd": usage.usd,
        }
    )


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
