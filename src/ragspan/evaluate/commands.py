"""The options of `ragspan evaluate`, `agree`, `failures` and `labels pull`. What they do is imported when they run."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ragspan.command_line import Judge, Metrics
from ragspan.exceptions import RagspanError

# Options of several commands

_QuestionColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A column's name, or a path such as prediction.contexts; by default known names are recognised."),
]
_ContextsColumn: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="A column or path whose cells are lists, the JSON text of one, or a text; may be given more than once."
    ),
]
_AnswerColumn: TypeAlias = Annotated[str | None, typer.Option(help="A column or path: the response that is scored.")]
_Limit: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Only the first rows.", min=1)]
_Since: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only traces that began then or later: 2026-11-23T08:00:00Z.")
]
_Project: TypeAlias = Annotated[str | None, typer.Option(help="Of the tool; MLflow's experiment. A name or an id.")]
_Json: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="The figures for a program.")]


@contextlib.contextmanager
def _errors_shown(command: str) -> Iterator[None]:
    try:
        yield
    except RagspanError as error:
        typer.echo(f"ragspan {command}: {error}", err=True)
        raise typer.Exit(2) from None


def evaluate(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="CSV, JSONL or Parquet, also with .gz; - is standard input; phoenix:NAME or mlflow:NAME is a data set.",
        ),
    ] = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="TOOL", help="Score the traces that phoenix or mlflow has, no FILE.")
    ] = None,
    project: _Project = None,
    since: _Since = None,
    question_column: _QuestionColumn = None,
    contexts_column: _ContextsColumn = None,
    answer_column: _AnswerColumn = None,
    label_column: Annotated[
        str | None, typer.Option(help="What people say of some responses: see ragspan agree.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="What to call a row by; by default its id or number.")] = None,
    metrics: Metrics = None,
    judge: Judge = None,
    judge_share: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Ask the judge about this share of the rows, such as 0.2: the most doubtful ones, and some at random.",
        ),
    ] = None,
    limit: _Limit = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.jsonl", help="The rows with their scores.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an earlier run, and judge again where it failed.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="A report to look at.")] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="BASELINE.jsonl", help="An earlier output to compare with, in the report.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Figures by this column, too, such as a model; may be given more than once."
        ),
    ] = None,
    json: _Json = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=MEAN", help="Exit with 1 if the mean is lower; may be given more than once."),
    ] = None,
    min_passing: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=SHARE", help="Exit with 1 if a smaller share of the labelled rows passes."),
    ] = None,
    none_below: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=SCORE", help="Exit with 1 if a single score is lower.")
    ] = None,
    min_scored: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Of the rows: if fewer have a score, these gates fail. By default half, and they fail if rows were skipped.",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE.xml", help="The gates as test results, for a CI system.")
    ] = None,
    to_trace: Annotated[
        bool, typer.Option("--to-trace", help="Send scores to the spans that rows name, by OTEL_*, or to the tool.")
    ] = False,
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
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="CSV, JSONL or Parquet, also with .gz; phoenix:NAME or mlflow:NAME is a data set."
        ),
    ],
    *,
    label_column: Annotated[
        str, typer.Option(help="What people say: yes or no, pass or fail, 1 or 0; empty without a label.")
    ] = "label",
    question_column: _QuestionColumn = None,
    contexts_column: _ContextsColumn = None,
    answer_column: _AnswerColumn = None,
    metrics: Metrics = None,
    judge: Judge = None,
    limit: _Limit = None,
    json: _Json = None,
) -> None:
    """Say how well the judge agrees with your labels: score a table in which all rows, or some, have one.

    A label is compared with the metrics that measure it, which the name of its column tells: one with "complete" in it with
    completeness, one with "relevant" with relevance, any other with context adherence and faithfulness. --metrics compares
    others. A second label is a second run.

    The share of responses that fail is said once, by the label: of all rows, those without a label included. For that the
    labelled rows should be a random part of the table. Figures have 95 % intervals.

    Exit codes: 0 done; 1 no row with a label has a score; 2 wrong usage or input.
    """
    options = Namespace(**locals())
    with _errors_shown("agree"):
        from ragspan.evaluate.evaluate_command import agree_with_labels

        raise typer.Exit(agree_with_labels(options))


def failures(
    data: Annotated[
        str | None, typer.Argument(metavar="FILE", help="What ragspan evaluate --output wrote, or the console's file.")
    ] = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="TOOL", help="Of the scores that phoenix or mlflow has, no FILE.")
    ] = None,
    project: _Project = None,
    since: _Since = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Failures of these metrics; by default of any.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.jsonl", help="A table for ragspan evaluate and agree."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOOL:DATASET", help="phoenix:NAME or mlflow:NAME: a data set there.")
    ] = None,
) -> None:
    """Collect the answers that fail, with question, contexts, response, cause and finding, to work on them.

    They become a table (--output) or a data set in Phoenix or MLflow (--to), where people can label them. ragspan evaluate
    takes the table back, and so does ragspan agree with the labels in it. What a data set has already is not added again.

    Exit codes: 0 done; 2 wrong usage or input, or the tool cannot be read or written.
    """
    options = Namespace(**locals())
    with _errors_shown("failures"):
        from ragspan.evaluate.failures import collect_failures

        typer.echo(collect_failures(options))


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
    since: _Since = None,
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
