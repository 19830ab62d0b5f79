"""What is written to MLflow for an outcome: one feedback, which is one of MLflow's kinds of assessment."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragspan.outcomes import MetricFailure, Score, ScoredRecord, Usage
from ragspan.records import SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.score_attributes import annotator_kind
from ragspan.telemetry.values import bounded, error_type, well_formed

OWN_SOURCE = "ragspan"
"""Who assessed, where no judge did."""

_SIZE = 1500  # bytes of a feedback without its rationale
_MAX_NAME = 250
"""Characters that MLflow's tables hold of a name and of a source."""
_SOURCE_TYPES = {semconv.ANNOTATOR_CODE: "CODE", semconv.ANNOTATOR_LLM: "LLM_JUDGE"}

# Keys of an assessment's metadata. MLflow shows what the last three say as the cost of the judge.
_PREFIX = "ragspan."
_LABEL = "ragspan.label"
_THRESHOLD = "ragspan.threshold"
_FALLBACK = "ragspan.fallback"
_JUDGE_COST = "mlflow.assessment.judgeCost"
_JUDGE_INPUT_TOKENS = "mlflow.assessment.judgeInputTokens"
_JUDGE_OUTPUT_TOKENS = "mlflow.assessment.judgeOutputTokens"


@dataclass(frozen=True, kw_only=True, slots=True)
class Feedback:
    """A metric's value, or its failure, for one answer, as MLflow knows it.

    MLflow keeps every feedback that it is given, so one must be recognised when it comes a second time: it is the same if
    trace, name, source and record are. The span is not part of that, for a record that is emitted anew has another one.
    """

    trace_id: str
    span_id: str
    name: str
    source_type: str
    source_id: str
    record_id: str
    value: float | None
    """None for a failure."""
    error_code: str | None = None
    rationale: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    key: str = field(init=False)
    """The identity in the form of an assessment's id.

    Servers keep the id that they are given, and refuse a second assessment of the same: two processes that deliver the
    same record at the same time cannot make two of it. Where a server gives an id of its own, `find_in` is the guard.
    """

    def __post_init__(self) -> None:
        parts = (self.trace_id, self.record_id, self.name, self.source_id)
        digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16)
        object.__setattr__(self, "key", f"a-{digest.hexdigest()}")

    @property
    def size(self) -> int:
        """Bytes of memory, of which the explanation is the part that varies."""
        return _SIZE + sys.getsizeof(self.rationale)

    def find_in(self, assessments: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """This feedback among a trace's assessments, as it was written before."""
        return next(filter(self._is_it, assessments), None)

    def creation(self) -> dict[str, Any]:
        """The assessment to be created."""
        return {
            "assessment_id": self.key,
            "assessment_name": self.name,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "source": {"source_type": self.source_type, "source_id": self.source_id},
            "feedback": self._feedback(),
            "metadata": dict(self.metadata),
            **({} if self.rationale is None else {"rationale": self.rationale}),
        }

    def change_of(self, written: Mapping[str, Any]) -> dict[str, Any] | None:
        """What has to be changed in the assessment that is there; None if it says the same."""
        metadata = _entries(written, "metadata")
        outdated = {key: "" for key, text in metadata.items() if text and key.startswith(_PREFIX)}
        wanted = outdated | dict(self.metadata)  # entries are merged there, none can be removed
        is_same = (
            _without_none(_entries(written, "feedback")) == _without_none(self._feedback())
            and (written.get("rationale") or None) == self.rationale
            and wanted == {key: metadata.get(key) for key in wanted}
        )
        if is_same:
            return None
        return {"feedback": self._feedback(), "rationale": self.rationale or "", "metadata": wanted}

    def _is_it(self, assessment: Mapping[str, Any]) -> bool:
        if assessment.get("assessment_id") == self.key:
            return True
        return (
            assessment.get("assessment_name") == self.name
            and _entries(assessment, "source").get("source_id") == self.source_id
            and _entries(assessment, "metadata").get(semconv.RECORD_ID) == self.record_id
        )

    def _feedback(self) -> dict[str, Any]:
        if self.error_code is not None:
            return {"error": {"error_code": self.error_code}}
        return {"value": self.value}


def feedback_of(
    scored: ScoredRecord, span: SpanAnchor, *, content: ContentPolicy, failures: bool
) -> Iterator[Feedback]:
    """One feedback a score, and one a failure if they are wanted; nothing for a metric that does not apply.

    Args:
        scored: the outcomes.
        span: of the answer.
        content: what explanations may say.
        failures: whether a metric that failed is told.
    """
    record_id = _name(scored.record.record_id)
    answer = {"trace_id": f"tr-{span.trace_id:032x}", "span_id": f"{span.span_id:016x}", "record_id": record_id}
    for metric, outcome in scored.outcomes.items():
        if isinstance(outcome, Score):
            yield Feedback(
                **answer,
                name=_name(metric),
                source_type=_SOURCE_TYPES[annotator_kind(outcome)],
                source_id=_name(outcome.judge or OWN_SOURCE),
                value=float(outcome.value),
                rationale=content.explanation(outcome),
                metadata={semconv.RECORD_ID: record_id, **_notes(outcome)},
            )
        elif isinstance(outcome, MetricFailure) and failures:
            yield Feedback(
                **answer,
                name=_name(metric),
                source_type=_SOURCE_TYPES[semconv.ANNOTATOR_CODE],
                source_id=OWN_SOURCE,
                value=None,
                # Never the message: it may quote what a provider or a parser quoted of the user's text.
                error_code=error_type(outcome.error_type),
                metadata={semconv.RECORD_ID: record_id},
            )


def _notes(score: Score) -> dict[str, str]:
    """What is known besides value and explanation."""
    known = {
        _LABEL: score.label,
        _THRESHOLD: score.threshold,
        semconv.PROMPT_VERSION: score.prompt_version,
        _FALLBACK: score.fallback,
        **_cost(score.usage),
    }
    return {key: _name(str(fact)) for key, fact in known.items() if fact is not None}


def _cost(usage: Usage | None) -> dict[str, float | None]:
    if usage is None or not usage.requests:
        return {}
    return {
        _JUDGE_COST: usage.usd,
        _JUDGE_INPUT_TOKENS: usage.input_tokens,
        _JUDGE_OUTPUT_TOKENS: usage.output_tokens,
    }


def _name(text: str) -> str:
    return well_formed(bounded(text, _MAX_NAME))


def _entries(assessment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = assessment.get(name)
    return value if isinstance(value, Mapping) else {}


def _without_none(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}
