"""The options of `ragspan evaluate`, `agree`, `failures` and `labels pull`. What they do is imported when they run."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from typer import Option

from ragspan.command_line import Judge, Metrics

Text: TypeAlias = str | None
Texts: TypeAlias = list[str] | None
File: TypeAlias = Path | None

_Table = partial(typer.Argument, metavar="FILE")
_TABLES = "CSV, JSONL or Parquet; - is standard input; phoenix:NAME or mlflow:NAME is a data set."
_Question: TypeAlias = Annotated[
    Text, Option(help="A column's name, or a path such as prediction.contexts; by default known names are recognised.")
]
_Contexts: TypeAlias = Annotated[
    Texts, Option(help="A column or path with lists, the JSON text of one, or a text; may be given more than once.")
]
_Answer: TypeAlias = Annotated[Text, Option(help="A column or path: the response that is scored.")]
_Since: TypeAlias = Annotated[
    Text, Option(metavar="TIME", help="Only traces that began then or later: 2026-11-23T08:00:00Z.")
]
_Project: TypeAlias = Annotated[Text, Option(help="Of the tool; MLflow's experiment. A name or an id.")]
_from = partial(Option, "--from", metavar="TOOL")
_output = partial(Option, "--output", "-o", metavar="FILE.jsonl")
_ENOUGH = "Of the rows: if fewer have a score, these gates fail. By default half, and they fail if rows were skipped."


def evaluate(
    data: Annotated[Text, _Table(help=_TABLES)] = None,
    *,
    source: Annotated[Text, _from(help="Score the traces that phoenix or mlflow has, no FILE.")] = None,
    project: _Project = None,
    since: _Since = None,
    question_column: _Question = None,
    contexts_column: _Contexts = None,
    answer_column: _Answer = None,
    label_column: Annotated[Text, Option(help="What people say of some responses: see ragspan agree.")] = None,
    metrics: Metrics = None,
    judge: Judge = None,
    judge_share: Annotated[
        float | None,
        Option(metavar="SHARE", help="Ask the judge about this share: the most doubtful rows, and some at random."),
    ] = None,
    limit: Annotated[int | None, Option(metavar="N", help="Only the first rows.", min=1)] = None,
    output: Annotated[
        File, _output(help="The rows with their scores; without --resume they replace an earlier result.")
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue an earlier run, and judge again what failed.")] = False,
    report: Annotated[File, Option(metavar="FILE.html", help="A report to look at.")] = None,
    compare: Annotated[
        File, Option(metavar="BASELINE.jsonl", help="An earlier output to compare with, here and in the report.")
    ] = None,
    by: Annotated[
        Texts,
        Option(metavar="COLUMN", help="Figures by this column, too, such as a model; may be given more than once."),
    ] = None,
    json: Annotated[File, Option(metavar="FILE", help="The figures for a program.")] = None,
    mean: Annotated[
        Texts,
        Option(
            "--fail-under", metavar="METRIC=MEAN", help="Exit with 1 if the mean is lower; may be given more than once."
        ),
    ] = None,
    passing: Annotated[
        Texts,
        Option(
            "--min-passing", metavar="METRIC=SHARE", help="Exit with 1 if a smaller share of the labelled rows passes."
        ),
    ] = None,
    none_below: Annotated[Texts, Option(metavar="METRIC=SCORE", help="Exit with 1 if a single score is lower.")] = None,
    min_scored: Annotated[float | None, Option(metavar="SHARE", min=0, max=1, help=_ENOUGH)] = None,
    to_trace: Annotated[bool, Option("--to-trace", help="With --from: send each score to its answer's span.")] = False,
) -> None:
    """Score the responses in a table: one row per question, with the contexts and the response that was given.

    With --from the rows are the answers in traces that a tool has stored; its own variables say where it is.
    Columns of Ragas, DeepEval, TruLens and LangSmith, and RagRecords as JSON, are recognised by their names.

    Exit codes: 0 done; 1 nothing was scored, a gate failed (--fail-under, --min-passing, --none-below), or scores could
    not be sent to their traces; 2 wrong usage or input; 130 stopped by Ctrl-C or SIGTERM, and what is done is kept.
    """
    options = Namespace(**locals())
    from ragspan.evaluate.evaluate_command import evaluate_table

    raise typer.Exit(evaluate_table(options))


def agree(
    data: Annotated[str, _Table(help=_TABLES)],
    *,
    label_column: Annotated[
        str, Option(help="What people say: yes or no, pass or fail, 1 or 0; empty without a label.")
    ] = "label",
    question_column: _Question = None,
    contexts_column: _Contexts = None,
    answer_column: _Answer = None,
    metrics: Metrics = None,
    judge: Judge = None,
) -> None:
    """Say how well the judge agrees with your labels: score a table in which all rows, or some, have one.

    A label says whether the contexts support a response, and is compared with context adherence and faithfulness.
    --metrics compares others. A second label is a second run.

    The share of responses that fail is said once, by the label: of all rows, those without a label included. For that the
    labelled rows should be a random part of the table. Figures have 95 % intervals.

    Exit codes: 0 done; 1 no row with a label has a score; 2 wrong usage or input.
    """
    options = Namespace(**locals())
    from ragspan.evaluate.evaluate_command import agree_with_labels

    raise typer.Exit(agree_with_labels(options))


def failures(
    data: Annotated[Text, _Table(help="What ragspan evaluate --output wrote.")] = None,
    *,
    source: Annotated[Text, _from(help="Of the scores that phoenix or mlflow has, no FILE.")] = None,
    project: _Project = None,
    since: _Since = None,
    output: Annotated[File, _output(help="A table for ragspan evaluate and agree.")] = None,
    to: Annotated[Text, Option(metavar="TOOL:DATASET", help="phoenix:NAME or mlflow:NAME: a data set there.")] = None,
) -> None:
    """Collect the answers that fail, with question, contexts, response, cause and finding, to work on them.

    They become a table (--output), or a data set in Phoenix or MLflow (--to). What it has already is not added again. People
    write pass or fail into a label: the table's column, in Phoenix an example's metadata, in MLflow an expectation. Then ragspan
    agree takes the table, or phoenix:NAME; so does ragspan evaluate.

    Exit codes: 0 done; 2 wrong usage or input, or the tool cannot be read or written.
    """
    options = Namespace(**locals())
    from ragspan.evaluate.evaluate_command import collect_failures

    typer.echo(collect_failures(options))


labels = typer.Typer(no_args_is_help=True, help="Labels that people gave to answers in a tracing tool.")


@labels.command()
def pull(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="phoenix or mlflow; its own variables say where it is.")],
    *,
    project: Annotated[str, Option(help="Of the tool; MLflow's experiment. A name or an id.")],
    name: Annotated[str, Option(help="What the annotation or assessment is called that people gave.")],
    output: Annotated[Path, _output(help="The table.")],
    since: _Since = None,
) -> None:
    """Write the answers that people annotated in a tool to a table, for ragspan agree.

    A label is a word such as yes or no, pass or fail, supported or unsupported; any other counts by its score, from .5 on as
    good. What was said last counts. What judges wrote is left out.

    Exit codes: 0 done; 2 wrong usage, or the tool cannot be read.
    """
    from ragspan.evaluate.sources import stored_answers, write_labels

    written, unclear, names = write_labels(output, name, stored_answers(tool, project, since, annotated=True))
    typer.echo(f"{written:,} answers with a label are in {output}")
    if not written + unclear:
        there = ", ".join(map(repr, names)) or "none at all"
        typer.echo(f"no answer has a label {name!r} that a person gave; there are: {there}", err=True)
    if unclear:
        typer.echo(f"{unclear:,} more have a label {name!r} that says neither good nor bad, and no score", err=True)
