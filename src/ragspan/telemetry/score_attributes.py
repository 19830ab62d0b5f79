"""Outcomes as attributes: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ragspan.config import ContentPlace
from ragspan.judges.background import shown_background
from ragspan.judges.claim_places import locate
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.outcomes import Asked, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.step_attributes import document_attributes, document_id, text_attributes
from ragspan.telemetry.values import MAX_TEXT_CHARS, Attributes, bounded, clean_name, error_type, json_list
from ragspan.turns import with_turns

_CODE_JUDGES = (None, "overlap", "hhem", "lettucedetect")
"""Judges that are not language models: the embedded judge and classifiers. A colon and the model's name may follow."""
_MAX_CLAIMS = 50
_MAX_CLAIM_CHARS = 200


def annotator_kind(score: Score) -> str:
    """OpenInference's kind of judge: `LLM` for a language model, `CODE` for any other judge, or if none is named."""
    kind = score.judge.partition(":")[0] if score.judge else None
    return semconv.ANNOTATOR_CODE if kind in _CODE_JUDGES else semconv.ANNOTATOR_LLM


def answer_attributes(scored: ScoredRecord, content: ContentPolicy, dimensions: Attributes) -> Attributes:
    """All attributes of the answer's span, the most important first."""
    record, found = scored.record, dict[str, object]()
    scores = {metric: outcome for metric, outcome in scored.outcomes.items() if isinstance(outcome, Score)}
    for metric, outcome in scored.outcomes.items():
        found |= flat_outcome(metric, outcome)
    found |= {
        semconv.ERROR_TYPE: error_type(record.error_type) if record.status == "error" else None,
        semconv.ANSWER_REFUSAL: scored.refusal,
        semconv.LANGUAGE: scored.language,
        semconv.CONTEXTS_COUNT: None if record.contexts is None else len(record.contexts),
        semconv.CONTEXTS_UNKNOWN: record.contexts_unknown,
        semconv.ANSWER_SWALLOWED_ERRORS: record.swallowed_errors or None,
        semconv.TAG_TAGS: record.tags or None,
        **dimensions,
        semconv.AGENT_NAME: clean_name(record.name) if record.is_agent else None,
        semconv.ASKED: scored.asked,
        semconv.JUDGE: _joined(score.judge for score in scores.values()),
        semconv.PROMPT_VERSION: _joined(score.prompt_version for score in scores.values()),
    }
    found |= {f"{semconv.LABEL}{metric}": score.label for metric, score in scores.items()}
    for metric, score in scores.items():
        found |= _marks(metric, score)
    found |= text_attributes(record.question, "inputs", content)
    found |= text_attributes(record.response, "outputs", content)
    found |= {f"{semconv.EXPLANATION}{metric}": content.explanation(score) for metric, score in scores.items()}
    for metric, score in with_turns(scores.items()):
        found[f"{semconv.CLAIMS}{metric}"] = claim_map(record, score, content)
        found[f"{semconv.JUDGE_OF}{metric}"] = score.judge
        found |= {f"{semconv.DETAIL}{metric}.{name}": figure for name, figure in score.details.items()}
    for index, (metric, score) in enumerate(scores.items()):
        found |= _openinference_copy(index, metric, score)
    if not record.retrievals and record.contexts and content.allows(hidden_as="documents"):  # no other span has them
        found |= document_attributes(semconv.RETRIEVAL_DOCUMENTS, record.contexts, content, limit=MAX_TEXT_CHARS)
    return found


def evaluation_attributes(
    scored: ScoredRecord, metric: str, content: ContentPolicy, dimensions: Attributes
) -> Attributes:
    """The attributes of an outcome's own span, the most important first."""
    outcome, seconds = scored.outcomes[metric], scored.durations.get(metric)
    found: dict[str, object] = {
        **flat_outcome(metric, outcome),  # so that one query for the flat names finds late scores, too
        **_evaluation_result(scored, metric, content, dimensions, "spans"),
        semconv.EVALUATION_DURATION_MS: None if seconds is None else seconds * 1000,
    }
    if isinstance(outcome, Score):
        found[f"{semconv.LABEL}{metric}"] = outcome.label
        found[f"{semconv.CLAIMS}{metric}"] = claim_map(scored.record, outcome, content)
        found |= _openinference_copy(0, metric, outcome)
    return found


def _marks(metric: str, score: Score) -> dict[str, object]:
    """What else there is to know of a score, under names that end with the metric's."""
    return {
        f"{semconv.SCREEN}{metric}": score.screen and float(score.screen.value),
        f"{semconv.CAUSE}{metric}": score.cause if score.causes else None,
        f"{semconv.FALLBACK}{metric}": score.fallback,
    }


def flat_outcome(metric: str, outcome: Outcome) -> dict[str, object]:
    """The one attribute that says how the metric ended."""
    match outcome:
        case Score():
            return {f"{semconv.SCORE}{metric}": float(outcome.value)}
        case NotApplicable():
            return {f"{semconv.NOT_APPLICABLE}{metric}": clean_name(outcome.reason)}
        case MetricFailure():
            # Never the message: a provider or a parser may have quoted the user's text in it.
            return {f"{semconv.ERROR}{metric}": error_type(outcome.error_type)}


def _openinference_copy(index: int, metric: str, score: Score) -> dict[str, object]:
    """The score as an OpenInference evaluation; no explanation, which would double the span's size."""
    facts = {
        "name": clean_name(metric),
        "score": float(score.value),
        "label": score.label,
        "annotator_kind": annotator_kind(score),
        "identifier": clean_name(score.judge or "ragspan"),
    }
    return {semconv.EVALUATION.format(index, name): fact for name, fact in facts.items()}


def _evaluation_result(
    scored: ScoredRecord, metric: str, content: ContentPolicy, dimensions: Attributes, place: ContentPlace
) -> Attributes:
    """The outcome under the GenAI conventions' own names, for evaluation spans and events."""
    record, outcome = scored.record, scored.outcomes[metric]
    last = max(record.generations, key=lambda one: one.ended_ns, default=None)
    about: dict[str, object] = {
        semconv.GEN_AI_EVALUATION_NAME: clean_name(metric),
        semconv.RECORD_ID: record.record_id,
        semconv.ASKED: scored.asked,
        semconv.GEN_AI_RESPONSE_ID: last and last.response_id,  # of the judged reply
        **dimensions,
    }
    if isinstance(outcome, MetricFailure):
        about[semconv.ERROR_TYPE] = error_type(outcome.error_type)
    elif isinstance(outcome, Score):
        about |= {
            semconv.GEN_AI_EVALUATION_SCORE_VALUE: float(outcome.value),
            semconv.GEN_AI_EVALUATION_SCORE_LABEL: outcome.label,
            semconv.GEN_AI_EVALUATION_EXPLANATION: content.explanation(outcome, place),
            semconv.JUDGE: outcome.judge,
            semconv.PROMPT_VERSION: outcome.prompt_version,
            **_marks(metric, outcome),
        }
    return about


def event_attributes(scored: ScoredRecord, metric: str, content: ContentPolicy, dimensions: Attributes) -> Attributes:
    """The outcome, a score or a failure, as an event."""
    judge = getattr(scored.outcomes[metric], "judge", None)
    # Log records with the same value are duplicates, and a worker of a fleet may score a record twice.
    uid = "/".join(filter(None, [scored.record.record_id, metric, judge]))
    return {**_evaluation_result(scored, metric, content, dimensions, "events"), semconv.LOG_RECORD_UID: uid}


def measured(metric: str, score: Score, asked: Asked | None) -> Iterator[tuple[float, Attributes]]:
    """The values for the histogram of scores: that of each judge that read the answer, so that each judge's are of one kind.

    The embedded judge's are of all answers. Those of a judge that is asked about a share say why it was asked.
    """
    was_asked = score.fallback is None and (score.screen is not None or score.usage is not None)
    for one in (score, score.screen) if score.screen is not None else (score,):
        about = {
            semconv.GEN_AI_EVALUATION_NAME: clean_name(metric),
            semconv.GEN_AI_EVALUATION_SCORE_LABEL: one.label,
            semconv.JUDGE: one.judge,
            semconv.ASKED: asked if was_asked and one is score else None,
        }
        yield float(one.value), about


def _joined(names: Iterable[str | None]) -> str | None:
    """The distinct names, sorted, with commas between them."""
    distinct = sorted({name for name in names if name is not None})
    return clean_name(",".join(distinct)) if distinct else None


def claim_map(record: RagRecord, score: Score, content: ContentPolicy) -> str | None:
    """JSON: the verdict on each claim, what it rests on, and where it is in the response and in the contexts, in characters.

    Only the first claims are in it, as many as fit. None if there is no claim, or if texts must not be sent.
    """
    verdicts = [one for one in score.evidence if isinstance(one, ClaimVerdict)][:_MAX_CLAIMS]
    if not verdicts or not content.allows(hidden_as="outputs"):
        return None
    contexts, background = record.contexts or (), shown_background(record)
    kinds = ["context"] * len(contexts) + [one.kind for one in background]
    claims = [verdict.claim or "" for verdict in verdicts]
    places = locate(claims, record.response or "", [*(one.text for one in contexts), *(one.text for one in background)])
    found = []
    for verdict, (sentence, support) in zip(verdicts, places, strict=True):
        one: dict[str, Any] = {"claim": bounded(verdict.claim or "", _MAX_CLAIM_CHARS), "verdict": verdict.verdict}
        if verdict.probability is not None:
            one["probability"] = round(verdict.probability, 3)
        if sentence is not None:
            one["response"] = list(sentence)
        if verdict.supported:
            # The kind of text that has most of the claim's words; not known if none has half, and there are several kinds.
            if support or len(set(kinds)) == 1:
                one["ground"] = kinds[support[0].context if support else 0]
            documents = [at for at in support if at.context < len(contexts)]
            one["contexts"] = [at._asdict() | document_id(contexts[at.context]) for at in documents]
        elif verdict.verdict == "unsupported":
            one["ground"] = "none"
        found.append(one)
    return json_list(found)
