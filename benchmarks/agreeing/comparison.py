"""Compares scores of answers with what people said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agreeing.figures import RESAMPLES, Bootstrap, Estimate, auroc, balanced_accuracy, difference, spearman
from agreeing.judgements import COMPLETE, Judgement, JudgementSet, Ratings
from agreeing.judging import Column

Label: TypeAlias = Literal["supported", "complete"]
Kind: TypeAlias = Literal["judge", "recorded", "baseline", "people"]

METRIC_LABELS: dict[str, Label] = {
    "context_adherence": "supported",
    "faithfulness": "supported",
    "faithfulness_hhem": "supported",
    "completeness": "complete",
}
ANNOTATOR = "one annotator against the others"


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How well one scorer agrees with people, on one set, about one label."""

    label: Label
    scorer: str
    kind: Kind
    answers: int
    scored: int
    auroc: Estimate
    spearman: Estimate | None = None
    """With the mean rating; None where people rated nothing."""
    balanced_accuracy: Estimate | None = None
    """At the metric's own threshold; None for scorers without one."""
    lead: Estimate | None = None
    """The AUROC of the judge's best metric for this label less this one; None for that metric itself."""

    def as_data(self) -> dict[str, Any]:
        estimates = {name: getattr(self, name) for name in ("auroc", "spearman", "balanced_accuracy", "lead")}
        return {
            "label": self.label,
            "scorer": self.scorer,
            "kind": self.kind,
            "answers": self.answers,
            "scored": self.scored,
            **{name: as_data(estimate) for name, estimate in estimates.items()},
        }


def as_data(estimate: Estimate | None) -> dict[str, float | None] | None:
    """With None for what is undefined, which JSON has no number for."""
    if estimate is None:
        return None
    low, high = estimate.interval
    figures = {"value": estimate.value, "low": low, "high": high}
    return {name: None if math.isnan(figure) else figure for name, figure in figures.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scorer:
    name: str
    kind: Kind
    values: Sequence[float]
    scored: int
    threshold: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Panel:
    """What people said about a label: of each answer, or of each answer as often as it had annotators."""

    labels: Sequence[bool]
    means: Sequence[float] | None
    bootstrap: Bootstrap

    def agreement(self, label: Label, scorer: _Scorer) -> Agreement:
        estimate = self.bootstrap.estimate
        at = scorer.threshold
        return Agreement(
            label=label,
            scorer=scorer.name,
            kind=scorer.kind,
            answers=len(scorer.values),
            scored=scorer.scored,
            auroc=estimate(auroc(scorer.values, self.labels)),
            spearman=estimate(spearman(scorer.values, self.means)) if self.means is not None else None,
            balanced_accuracy=None if at is None else estimate(balanced_accuracy(scorer.values, self.labels, at)),
        )


def compare(
    judged: JudgementSet, columns: Sequence[Column], *, seed: int, resamples: int = RESAMPLES
) -> list[Agreement]:
    """The judge's metrics, the best of them first, and beside them other judges, shortness, and single annotators."""
    return [
        agreement
        for label in dict.fromkeys(METRIC_LABELS[column.metric] for column in columns)
        for agreement in _about(label, judged, columns, seed=seed, resamples=resamples)
    ]


def _about(
    label: Label, judged: JudgementSet, columns: Sequence[Column], *, seed: int, resamples: int
) -> list[Agreement]:
    places = [at for at, one in enumerate(judged.judgements) if label == "supported" or one.completeness]
    judgements = [judged.judgements[at] for at in places]
    sources = [judgement.source for judgement in judgements]
    bootstrap = Bootstrap(sources, seed=f"{seed} {judged.name}", resamples=resamples)
    ratings = [rated for rated in (_ratings(label, judgement) for judgement in judgements) if rated]
    panel = _Panel(
        labels=[_is_positive(label, judgement) for judgement in judgements],
        means=[rated.mean for rated in ratings] if len(ratings) == len(judgements) else None,
        bootstrap=bootstrap,
    )
    own = [_scorer(column, places) for column in columns if METRIC_LABELS[column.metric] == label]
    agreements = [(panel.agreement(label, scorer), scorer) for scorer in own]
    best, best_scorer = max(agreements, key=lambda pair: pair[0].auroc.value)
    others = [agreement for agreement, _ in agreements if agreement is not best]
    others += [panel.agreement(label, scorer) for scorer in _others(judgements)]
    compared = [replace(other, lead=difference(best.auroc, other.auroc)) for other in others]
    if panel.means is None:
        return [best, *compared]
    return [
        best,
        *compared,
        *_annotators(label, best_scorer, ratings, sources, seed=f"{seed} {judged.name}", resamples=resamples),
    ]


def _scorer(column: Column, places: Sequence[int]) -> _Scorer:
    return _Scorer(
        name=column.metric,
        kind="judge",
        values=[column.values[at] for at in places],
        scored=column.scored,
        threshold=column.threshold,
    )


def _others(judgements: Sequence[Judgement]) -> list[_Scorer]:
    """The recorded judges that scored every answer, and the cheapest of all: the shorter, the better."""
    count = len(judgements)
    names = dict.fromkeys(name for judgement in judgements for name in judgement.recorded)
    recorded = [name for name in names if all(name in judgement.recorded for judgement in judgements)]
    shortness = [-float(len(judgement.record.response or "")) for judgement in judgements]
    return [
        *(
            _Scorer(
                name=name, kind="recorded", values=[judgement.recorded[name] for judgement in judgements], scored=count
            )
            for name in recorded
        ),
        _Scorer(name="shortness alone", kind="baseline", values=shortness, scored=count),
    ]


def _annotators(
    label: Label, best: _Scorer, ratings: Sequence[Ratings], sources: Sequence[str], *, seed: str, resamples: int
) -> list[Agreement]:
    """Each annotator against the mean of the others, all of them in one list; and the judge against the same means.

    The mean of all of an answer's annotators, which the judge is held against elsewhere, is less a matter of chance than
    that of all but one.
    """
    pairs = [
        (place, vote, (sum(rated.votes) - vote) / (len(rated.votes) - 1))
        for place, rated in enumerate(ratings)
        if len(rated.votes) > 1
        for vote in rated.votes
    ]
    means = [mean for _, _, mean in pairs]
    panel = _Panel(
        labels=[mean >= COMPLETE for mean in means],
        means=means,
        bootstrap=Bootstrap([sources[place] for place, _, _ in pairs], seed=seed, resamples=resamples),
    )
    votes = _Scorer(name=ANNOTATOR, kind="people", values=[vote for _, vote, _ in pairs], scored=len(pairs))
    values = [best.values[place] for place, _, _ in pairs]
    judge = _Scorer(name=f"{best.name} against the same", kind="people", values=values, scored=len(pairs))
    annotator, same = panel.agreement(label, votes), panel.agreement(label, judge)
    return [replace(annotator, lead=difference(same.auroc, annotator.auroc)), same]


def _ratings(label: Label, judgement: Judgement) -> Ratings | None:
    return judgement.faithfulness if label == "supported" else judgement.completeness


def _is_positive(label: Label, judgement: Judgement) -> bool:
    if label == "supported":
        return judgement.supported
    return judgement.completeness is not None and judgement.completeness.mean >= COMPLETE
