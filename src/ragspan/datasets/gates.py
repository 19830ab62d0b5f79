"""The mean that a metric should have at least: `--fail-under` and `ragspan.testing.assert_scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragspan.arguments import SHARE, wrong
from ragspan.datasets.results import Evaluation
from ragspan.metrics.catalogue import metric_names, require_known

_ROWS_SHOWN = 3


def parse_minimums(texts: Iterable[str]) -> dict[str, float]:
    """The minimum by metric, from texts such as `faithfulness=0.8`."""
    minimums = {}
    for text in texts:
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimums[metric] = float(value if metric else "")
        except ValueError:
            raise wrong("--fail-under", text, "a metric and a mean, such as faithfulness=0.8") from None
    return minimums


def require_minimums(minimums: Mapping[str, float], metrics: Sequence[str] | None = None) -> None:
    """Raise a `ConfigurationError` unless each is about one of these metrics, by default all, and from 0 to 1."""
    metrics = metric_names() if metrics is None else metrics
    for metric, minimum in minimums.items():
        require_known(metric, metrics)
        SHARE.check(f"the minimum of {metric}", minimum)


def shortfalls(evaluation: Evaluation, minimums: Mapping[str, float], *, allow_skipped: bool = True) -> dict[str, str]:
    """By metric, what is wrong with those whose mean is below its minimum. Nothing scored counts as below.

    So do, unless `allow_skipped`, rows that were skipped and should be in the mean.
    """
    found = {}
    for metric, minimum in minimums.items():
        summary = evaluation.summary[metric]
        wanted = f"{metric} should have a mean of at least {minimum:g}"
        skipped = summary.skipped + evaluation.bad_row_count
        if summary.mean is None:
            found[metric] = f"{wanted}, but nothing was scored: {summary.reasons or 'there are no rows'}"
        elif summary.mean < minimum:
            found[metric] = f"{wanted}, but has {summary.mean:.4g} over {summary.scored} scored rows"
        elif skipped and not allow_skipped:
            found[metric] = (
                f"{metric} has a mean of {summary.mean:.4g} over {summary.scored:,} scored rows, but {skipped:,} more had to"
                " be skipped: complete them, or accept this with --allow-skipped"
            )
    return found


def lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    """The rows with the lowest scores of a metric, in lines."""
    for row in evaluation.worst_by(metric)[:_ROWS_SHOWN]:
        yield from (line.plain for line in row.told(metric))
