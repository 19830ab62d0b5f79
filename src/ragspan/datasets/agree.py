"""The command `ragspan agree`: how well the metrics agree with the labels of a table."""

from __future__ import annotations

import json as json_text
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ragspan.datasets.labels import MetricAgreement
    from ragspan.metrics.agreement import Estimate
    from ragspan.metrics.rates import RateEstimate

_COLUMN = "A column's name; by default known names are recognised, as by `ragspan evaluate`."


def agree(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, JSONL or Parquet, also with .gz.")],
    *,
    label_column: Annotated[
        str | None,
        typer.Option(help="What people say of the response: yes or no, pass or fail, 1 or 0; empty where nobody did."),
    ] = None,
    question_column: Annotated[str | None, typer.Option(help=_COLUMN)] = None,
    contexts_column: Annotated[str | None, typer.Option(help=_COLUMN)] = None,
    answer_column: Annotated[str | None, typer.Option(help=_COLUMN)] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names, separated by commas; by default those of RAGSPAN_METRICS.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="overlap or openai:<model>; by default that of RAGSPAN_JUDGE.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first rows.", min=1)] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Rows scored at the same time; else RAGSPAN_CONCURRENCY.", min=1)
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="The figures for a program.")] = None,
) -> None:
    """Say how well the judge agrees with your labels: score a table whose rows have one, or some of whose rows have.

    Rows without a label count for the share of failing responses: the labels correct what the metric says of all rows. For that
    the labelled rows should be a random part of the table. Figures have 95 % intervals.

    Exit codes: 0 done; 2 wrong usage or input.
    """
    from rich.console import Console

    from ragspan.datasets.evaluation import evaluate
    from ragspan.datasets.labels import agreements, labels_of
    from ragspan.exceptions import RagspanError, TableError

    console = Console(highlight=False)
    try:
        labels = labels_of(file, label_column)
        if not labels:
            raise TableError(f"no row of {file} has a label")
        evaluation = evaluate(
            file,
            metrics,
            judge=judge,
            question_column=question_column,
            contexts_column=contexts_column,
            answer_column=answer_column,
            limit=limit,
            concurrency=concurrency,
            progress=True,
        )
    except RagspanError as error:
        typer.echo(f"ragspan agree: {error}", err=True)
        raise typer.Exit(2) from None
    found = agreements(evaluation, labels)
    rows = evaluation.rows + evaluation.bad_row_count
    console.print(f"{sum(row <= rows for row in labels):,} of {rows:,} rows have a label")
    if not found:
        console.print("None of them has a score: " + "; ".join(one.reasons for one in evaluation.summary.values()))
    else:
        _show(console, found)
    if json is not None:
        json.write_text(json_text.dumps([as_plain(one) for one in found], indent=2, allow_nan=False) + "\n")


def rate_in_words(metric: str, rate: RateEstimate) -> str:
    """The share of failing responses by metric and by labels, in a line."""
    return (
        f"{metric} fails {rate.by_metric:.1%} of the responses; by the standard of {rate.labels:,} labels"
        f" {rate.value:.1%} fail ({rate.lower:.1%} to {rate.upper:.1%})"
    )


def as_plain(agreement: MetricAgreement) -> dict[str, Any]:
    """The figures as JSON has them."""
    rate = agreement.rate
    return {
        "metric": agreement.metric,
        "labels": agreement.labels,
        "good": agreement.good,
        "auroc": _plain(agreement.auroc),
        "balanced_accuracy": _plain(agreement.balanced_accuracy),
        "missing_labels": agreement.missing,
        "calibration": [
            {"low": one.low, "high": one.high, "responses": one.responses, "good": one.good, "interval": one.interval}
            for one in agreement.bins
        ],
        "failures": None
        if rate is None
        else {"by_metric": rate.by_metric, "estimate": rate.value, "lower": rate.lower, "upper": rate.upper},
    }


def _plain(estimate: Estimate | None) -> Mapping[str, float] | None:
    if estimate is None or math.isnan(estimate.value):
        return None
    low, high = estimate.interval
    return {"value": estimate.value, "lower": low, "upper": high}


def _show(console: Any, found: Sequence[MetricAgreement]) -> None:
    from rich import box
    from rich.table import Table

    from ragspan.datasets.labels import CLOSE

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("metric", "labels\n(good)", "AUROC", "balanced\naccuracy", "labels\nmissing"):
        table.add_column(heading, justify="left" if heading == "metric" else "right", no_wrap=True)
    for one in found:
        missing = "-" if one.missing is None else f"{one.missing:,}"
        labels = f"{one.labels:,} ({one.good:,})"
        table.add_row(one.metric, labels, _cell(one.auroc), _cell(one.balanced_accuracy), missing)
    console.print(table)
    console.print(
        f"In brackets are 95 % intervals; so many labels are missing until they end {CLOSE:.2f} from the figure.\n"
    )
    for one in found:
        console.print(_calibration(one))
        if one.rate is not None:
            console.print(rate_in_words(one.metric, one.rate) + "\n")


def _calibration(agreement: MetricAgreement) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{agreement.metric}: how many responses are good, by score",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("score", "responses", "good", ""):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for one in agreement.bins:
        low, high = one.interval
        share = f"{one.good:.0%} ({low:.0%} to {high:.0%})"
        table.add_row(f"{one.low:.1f} to {one.high:.1f}", f"{one.responses:,}", share, "█" * round(20 * one.good))
    return table


def _cell(estimate: Estimate | None) -> str:
    if estimate is None or math.isnan(estimate.value):
        return "-"
    low, high = estimate.interval
    return f"{estimate.value:.2f} ({low:.2f} to {high:.2f})".replace("0.", ".").replace("1.00", "1")
