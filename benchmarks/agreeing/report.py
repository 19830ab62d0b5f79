"""What `agreement.py` finds out, and the tables that show it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from agreeing.comparison import METRIC_LABELS, Agreement, Label, as_data, compare
from agreeing.figures import Estimate, auroc, balanced_accuracy, mean_of
from agreeing.judgements import Judgement, JudgementSet
from agreeing.judging import Column

TARGETS: dict[tuple[str, Label], float] = {
    ("mtrag", "supported"): 0.83,
    ("clapnq", "supported"): 0.855,
    ("ragtruth_qa", "supported"): 0.82,
    ("ragtruth_summary", "supported"): 0.715,
    ("ragtruth_data2txt", "supported"): 0.78,
    ("mtrag", "complete"): 0.75,
}
"""AUROC of the embedded judge's best metric."""
BALANCED_TARGET = 0.70
"""Of the mean over the sets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetReport:
    """What is known of one set."""

    name: str
    answers: int
    sources: int
    supported: float
    """Share of the answers."""
    agreements: Sequence[Agreement]
    main: str | None
    """The judge's metric of which the figures below are: adherence, or the one that it has for "supported" besides."""
    without_empty: float | None
    """AUROC without answers that are empty; None if none is, or a label is then missing."""
    held_out: float | None
    """Balanced accuracy on the held-out sources; None if they lack one of the labels."""
    within_model: float | None
    """AUROC among the answers of one model, the mean over the pairs of all models; None without any."""
    words: tuple[float, float]
    """How many words the contexts of an answer have, and an answer: medians."""
    reasons: Mapping[str, Mapping[str, int]]
    """By metric, why answers have no score."""

    def best(self, label: Label) -> Agreement | None:
        """The judge's metric with the highest AUROC."""
        return next((one for one in self.agreements if one.label == label and one.kind == "judge"), None)

    def of_main(self) -> Agreement | None:
        return next((one for one in self.agreements if one.scorer == self.main), None)

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "answers": self.answers,
            "sources": self.sources,
            "supported": self.supported,
            "main": self.main,
            "agreements": [agreement.as_data() for agreement in self.agreements],
            "auroc_without_empty": self.without_empty,
            "held_out_balanced_accuracy": self.held_out,
            "auroc_within_model": self.within_model,
            "words": self.words,
            "reasons": self.reasons,
        }


def report_on(judged: JudgementSet, columns: Sequence[Column], *, seed: int, resamples: int) -> SetReport:
    agreements = compare(judged, columns, seed=seed, resamples=resamples)
    column = next((column for column in columns if METRIC_LABELS[column.metric] == "supported"), None)
    labels = [judgement.supported for judgement in judged.judgements]
    return SetReport(
        name=judged.name,
        answers=len(judged.judgements),
        sources=len({judgement.source for judgement in judged.judgements}),
        supported=sum(labels) / len(labels),
        agreements=agreements,
        main=column.metric if column else None,
        without_empty=_without_empty(judged.judgements, column) if column else None,
        held_out=_held_out(judged.judgements, column) if column else None,
        within_model=_within_model(judged.judgements, column) if column else None,
        words=_words(judged.judgements),
        reasons={column.metric: column.reasons for column in columns if column.reasons},
    )


def _without_empty(judgements: Sequence[Judgement], column: Column) -> float | None:
    weights = [int(not judgement.is_empty) for judgement in judgements]
    if all(weights):
        return None
    return _defined(auroc(column.values, [judgement.supported for judgement in judgements])(weights))


def _held_out(judgements: Sequence[Judgement], column: Column) -> float | None:
    labels = [judgement.supported for judgement in judgements]
    weights = [int(judgement.held_out) for judgement in judgements]
    return _defined(balanced_accuracy(column.values, labels, column.threshold)(weights))


def _within_model(judgements: Sequence[Judgement], column: Column) -> float | None:
    labels = [judgement.supported for judgement in judgements]
    whole = pairs = 0.0
    for model in {judgement.model for judgement in judgements}:
        weights = [int(judgement.model == model) for judgement in judgements]
        supported = sum(weight for weight, label in zip(weights, labels, strict=True) if label)
        count = supported * (sum(weights) - supported)
        if count:
            whole += count * auroc(column.values, labels)(weights)
            pairs += count
    return whole / pairs if pairs else None


def _words(judgements: Sequence[Judgement]) -> tuple[float, float]:
    texts = [" ".join(context.text for context in one.record.contexts or ()) for one in judgements]
    contexts = statistics.median(len(text.split()) for text in texts)
    return contexts, statistics.median(len((one.record.response or "").split()) for one in judgements)


def _defined(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def set_tables(report: SetReport) -> Iterator[RenderableType]:
    """The agreements about each label, what is to be said about them."""
    for label in dict.fromkeys(agreement.label for agreement in report.agreements):
        yield _table(report, label)
    contexts, answer = report.words
    yield f"{report.name}: {contexts:.0f} words of contexts and {answer:.0f} of the answer at the median"
    if report.within_model is not None:
        yield f"{report.name}, {report.main}: AUROC {report.within_model:.3f} within one answering model"
    if report.without_empty is not None:
        yield f"{report.name}, {report.main}: AUROC {report.without_empty:.3f} without empty answers"
    for metric, reasons in report.reasons.items():
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        yield f"{report.name}, {metric}: no score for {counts}; `cannot_tell` counts half, others 0"


def _table(report: SetReport, label: Label) -> Table:
    title = f"{report.name}: {report.answers} answers to {report.sources} sources; label: {label}"
    table = Table(title=title)
    for heading in ("scorer", "AUROC", "judge's lead", "Spearman", "balanced accuracy"):
        table.add_column(heading, no_wrap=True)
    for one in report.agreements:
        if one.label == label:
            estimates = (one.auroc, one.lead, one.spearman, one.balanced_accuracy)
            name = f"{one.scorer} (recorded)" if one.kind == "recorded" else one.scorer
            table.add_row(name, *map(shown, estimates))
    return table


def shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    low, high = estimate.interval
    return f"{estimate.value:.3f} [{low:.3f}, {high:.3f}]"


def _shown_plainly(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.3f}"


def summary(reports: Sequence[SetReport], *, with_targets: bool) -> Table:
    """A row for each set and label, and the means over the sets; accuracy is that of the main metric."""
    table = Table(
        title="The judge's best metric of each set, with 95 % intervals; balanced accuracy of its main metric"
    )
    for heading in ("set", "label", "metric", "AUROC", "target", "balanced accuracy", "target", "held out"):
        table.add_column(heading, no_wrap=True)
    for report in reports:
        for label in dict.fromkeys(agreement.label for agreement in report.agreements):
            table.add_row(*_summary_cells(report, label, with_targets=with_targets))
    means = means_of(reports)
    if means is not None:
        target = f"{BALANCED_TARGET:.3f}" if with_targets else ""
        accuracy = (shown(means.balanced_accuracy), target, _shown_plainly(means.held_out))
        table.add_row("mean of the sets", "supported", "", shown(means.auroc), "", *accuracy)
    return table


def _summary_cells(report: SetReport, label: Label, *, with_targets: bool) -> list[str]:
    best, main = report.best(label), report.of_main()
    target = TARGETS.get((report.name, label)) if with_targets else None
    cells = [report.name, label, best.scorer if best else "", shown(best.auroc if best else None)]
    cells.append("" if target is None else f"{target:.3f}")
    if label == "supported" and main is not None:
        cells += [shown(main.balanced_accuracy), "", _shown_plainly(report.held_out)]
    return cells


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """Over the sets, each of which counts the same."""

    auroc: Estimate
    """Of the best metric of each set."""
    balanced_accuracy: Estimate
    """Of the main metric, and so is the next."""
    held_out: float | None

    def as_data(self) -> dict[str, Any]:
        return {
            "auroc": as_data(self.auroc),
            "balanced_accuracy": as_data(self.balanced_accuracy),
            "held_out_balanced_accuracy": self.held_out,
        }


def means_of(reports: Sequence[SetReport]) -> Means | None:
    """About "supported"; None if no metric told of it."""
    best = [one for report in reports if (one := report.best("supported")) is not None]
    if not best:
        return None
    main = [report.of_main() for report in reports]
    held_out = [report.held_out for report in reports if report.held_out is not None]
    return Means(
        auroc=mean_of([one.auroc for one in best]),
        balanced_accuracy=mean_of([one.balanced_accuracy for one in main if one and one.balanced_accuracy]),
        held_out=statistics.fmean(held_out) if held_out else None,
    )
