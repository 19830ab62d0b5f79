"""The options of `ragspan evaluate`, `ragspan agree` and `ragspan labels pull`. What they do is imported when they run."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ragspan.command_line import Judge, Metrics
from ragspan.evaluate import table_options as option
from ragspan.exceptions import RagspanError


@contextlib.contextmanager
def _errors_shown(command: str) -> Iterator[None]:
    try:
        yield
    except RagspanError as error:
        typer.echo(f"ragspan {command}: {error}", err=True)
        raise typer.Exit(2) from None


def evaluate(
    data: option.Data = None,
    *,
    source: option.Source = None,
    project: option.Project = None,
    since: option.Since = None,
    question_column: option.QuestionColumn = None,
    contexts_column: option.ContextsColumn = None,
    answer_column: option.AnswerColumn = None,
    ground_truth_column: option.GroundTruthColumn = None,
    label_column: option.LabelColumn = None,
    id_column: option.IdColumn = None,
    metrics: Metrics = None,
    judge: Judge = None,
    output: option.Output = None,
    resume: option.Resume = False,
    report: option.Report = None,
    compare: option.Compare = None,
    plots: option.Plots = None,
    json: option.Json = None,
    fail_under: option.FailUnder = None,
    min_passing: option.MinPassing = None,
    none_below: option.NoneBelow = None,
    min_scored: option.MinScored = 0.5,
    allow_skipped: option.AllowSkipped = False,
    junit: option.Junit = None,
    limit: option.Limit = None,
    concurrency: option.Concurrency = None,
    patience: option.Patience = None,
    judge_share: option.Share = None,
    on_error: option.OnErrorOption = "skip",
    file_format: option.FileFormat = None,
    delimiter: option.Delimiter = None,
    encoding: option.Encoding = "utf-8",
    to_trace: option.ToTrace = False,
    trace_id_column: option.TraceIdColumn = None,
    span_id_column: option.SpanIdColumn = None,
    started_column: option.StartedColumn = None,
    ended_column: option.EndedColumn = None,
    quiet: option.Quiet = False,
) -> None:
    """Score the responses in a table: one row per question, with the contexts and the response that was given.

    With --from the rows are the answers in traces that a tool has stored; its own variables say where it is.
    Columns of Ragas, DeepEval, TruLens and LangSmith, and RagRecords as JSON, are recognised by their names.

    Exit codes: 0 done; 1 nothing was scored, a gate failed (--fail-under, --min-passing, --none-below), or scores could
    not be sent to their traces; 2 wrong usage or input; 130 stopped by Ctrl-C, and what is done is kept.
    """
    options = Namespace(**locals())
    with _errors_shown("evaluate"):
        from ragspan.evaluate.evaluate_command import evaluate_table

        raise typer.Exit(evaluate_table(options))


def agree(
    data: Annotated[str, typer.Argument(metavar="FILE", help="CSV, JSONL or Parquet, also with .gz.")],
    *,
    label_column: Annotated[
        str | None, typer.Option(help="What people say: yes or no, pass or fail, 1 or 0; empty without a label.")
    ] = None,
    question_column: option.QuestionColumn = None,
    contexts_column: option.ContextsColumn = None,
    answer_column: option.AnswerColumn = None,
    metrics: Metrics = None,
    judge: Judge = None,
    limit: option.Limit = None,
    concurrency: option.Concurrency = None,
    patience: option.Patience = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="The figures for a program.")] = None,
) -> None:
    """Say how well the judge agrees with your labels: score a table in which all rows, or some, have one.

    A label is compared with the metrics that measure it, which the name of its column tells: one with "complete" in it with
    completeness, one with "relevant" with relevance, any other with context adherence and faithfulness. --metrics compares
    others. A second label is a second run.

    The share of responses that fail is said once, by the label: of all rows, those without a label included. For that the
    labelled rows should be a random part of the table. Figures have 95 % intervals.

    Exit codes: 0 done; 1 no row with a label has a score; 2 wrong usage or input.
    """
    options = locals()
    with _errors_shown("agree"):
        from ragspan.evaluate.evaluate_command import agree_with_labels

        raise typer.Exit(agree_with_labels(**options))


labels = typer.Typer(no_args_is_help=True)


@labels.callback()
def _labels() -> None:
    """Labels that people gave to answers in a tracing tool."""


@labels.command()
def pull(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="phoenix or mlflow; its own variables say where it is.")],
    *,
    project: Annotated[str, typer.Option(help="Of the tool; MLflow's experiment. A name or an id.")],
    name: Annotated[str, typer.Option(help="What the annotation or assessment is called that people gave.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.jsonl", help="The table.")],
    since: option.Since = None,
) -> None:
    """Write the answers that people annotated in a tool to a table, for ragspan agree.

    A label is a word such as yes or no, pass or fail, supported or unsupported; any other counts by its score, from .5 on as
    good. What was said last counts. What judges wrote is left out.

    Exit codes: 0 done; 2 wrong usage, or the tool cannot be read.
    """
    with _errors_shown("labels pull"):
        from ragspan.evaluate.sources import stored_answers, write_labels

        written, unclear = write_labels(output, stored_answers(tool, project, since, name))
    typer.echo(f"{written:,} answers with a label are in {output}")
    if unclear:
        typer.echo(f"{unclear:,} more have a label {name!r} that says neither good nor bad, and no score", err=True)
