"""The command `ragspan evaluate`: its options, and what it asks for with them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Annotated

import typer

_COLUMN = "A column's name, or a path such as prediction.contexts; by default known names are recognised."


def evaluate(
    data: Annotated[
        str | None, typer.Argument(metavar="FILE", help="CSV, JSONL or Parquet, also with .gz; - is standard input.")
    ] = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="TOOL", help="Score the traces that phoenix or mlflow has, no FILE.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Of the tool; MLflow's experiment. A name or an id.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only traces that began then or later: 2026-11-23T08:00:00Z.")
    ] = None,
    question_column: Annotated[str | None, typer.Option(help=_COLUMN)] = None,
    contexts_column: Annotated[
        str | None, typer.Option(help="As above; a cell is a list, the JSON text of a list, or a text.")
    ] = None,
    answer_column: Annotated[str | None, typer.Option(help="As above: the response that is scored.")] = None,
    ground_truth_column: Annotated[str | None, typer.Option(help="Another name for --answer-column.")] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="What people say of some responses, yes or no: how many fail by that standard (ragspan agree)."
        ),
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="What to call a row by; by default its id or number.")] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names, separated by commas; by default those of RAGSPAN_METRICS.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="overlap or openai:<model>; by default that of RAGSPAN_JUDGE.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Results, as .csv, .jsonl or .parquet.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an earlier run left undone.")] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="A report to look at.")] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="BASELINE", help="Compare in the report with the results of an earlier run.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="The report's plots, as SVG files.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="The summary for a program.")] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=MEAN", help="Exit with 1 if the mean is lower; may be given more than once."),
    ] = None,
    allow_skipped: Annotated[
        bool, typer.Option("--allow-skipped", help="Let --fail-under pass though rows were skipped.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first rows.", min=1)] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Rows scored at the same time; else RAGSPAN_CONCURRENCY.", min=1)
    ] = None,
    on_error: Annotated[str, typer.Option(metavar="skip|stop", help="What a row that cannot be read does.")] = "skip",
    file_format: Annotated[
        str | None, typer.Option("--format", metavar="csv|jsonl|parquet", help="Of FILE; by default its ending tells.")
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of CSV cells; by default the header tells.")] = None,
    encoding: Annotated[str, typer.Option(help="Of text.")] = "utf-8",
    to_trace: Annotated[
        bool,
        typer.Option(
            "--to-trace", help="Send the scores to the spans that the rows name, over OTEL_*, or to the tool."
        ),
    ] = False,
    trace_id_column: Annotated[str | None, typer.Option(help="By default trace_id.")] = None,
    span_id_column: Annotated[str | None, typer.Option(help="By default span_id.")] = None,
    started_column: Annotated[
        str | None, typer.Option(help="By default started; ISO 8601 or Unix nanoseconds.")
    ] = None,
    ended_column: Annotated[str | None, typer.Option(help="By default ended; as above.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar; a line every ten seconds.")] = False,
) -> None:
    """Score the responses in a table: one row per question, with the contexts and the response that was given.

    With --from the rows are the answers in traces that a tool has stored; its own variables say where it is.
    Columns of Ragas, DeepEval, TruLens and LangSmith, and RagRecords as JSON, are recognised by their names.

    Exit codes: 0 done; 1 a mean is below a --fail-under, rows that it is about were skipped, or scores could not be sent
    to their traces; 2 wrong usage or input; 130 stopped by Ctrl-C, and what is done is kept.
    """
    options = Namespace(**locals())
    from ragspan.datasets.job import run_job
    from ragspan.exceptions import RagspanError

    try:
        code = run_job(options)
    except RagspanError as error:
        typer.echo(f"ragspan evaluate: {error}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(code)
