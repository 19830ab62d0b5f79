"""The options of the commands that score a table: their forms, and what `--help` says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

# Of several commands

QuestionColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A column's name, or a path such as prediction.contexts; by default known names are recognised."),
]
ContextsColumn: TypeAlias = Annotated[
    str | None, typer.Option(help="A column or path whose cells are lists, the JSON text of one, or a text.")
]
AnswerColumn: TypeAlias = Annotated[str | None, typer.Option(help="A column or path: the response that is scored.")]
Limit: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Only the first rows.", min=1)]
Concurrency: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Rows scored at the same time; else RAGSPAN_CONCURRENCY.", min=1)
]
Patience: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="How long a judge may be away; by default 600, and 90 before its first answer.", min=0
    ),
]
Since: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only traces that began then or later: 2026-11-23T08:00:00Z.")
]
Project: TypeAlias = Annotated[str | None, typer.Option(help="Of the tool; MLflow's experiment. A name or an id.")]

# Of `ragspan evaluate`

Data: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="FILE", help="CSV, JSONL or Parquet, also with .gz; - is standard input.")
]
Source: TypeAlias = Annotated[
    str | None, typer.Option("--from", metavar="TOOL", help="Score the traces that phoenix or mlflow has, no FILE.")
]
GroundTruthColumn: TypeAlias = Annotated[str | None, typer.Option(help="Another name for --answer-column.")]
LabelColumn: TypeAlias = Annotated[
    str | None, typer.Option(help="What people say of some responses: see ragspan agree.")
]
IdColumn: TypeAlias = Annotated[str | None, typer.Option(help="What to call a row by; by default its id or number.")]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Results, as .csv, .jsonl or .parquet.")
]
Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Continue an earlier run, and judge again where it failed.")
]
Report: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE.html", help="A report to look at.")]
Compare: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="BASELINE", help="Results to compare with, in the report.")
]
Plots: TypeAlias = Annotated[Path | None, typer.Option(metavar="DIR", help="The report's plots, as SVG files.")]
Json: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="The summary for a program.")]
FailUnder: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC=MEAN", help="Exit with 1 if the mean is lower; may be given more than once."),
]
MinPassing: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC=SHARE", help="Exit with 1 if a smaller share of the scored rows passes."),
]
NoneBelow: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="METRIC=SCORE", help="Exit with 1 if a single score is lower.")
]
MinScored: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="Of the rows: if fewer have a score, these gates fail. Refusals count.")
]
AllowSkipped: TypeAlias = Annotated[
    bool, typer.Option("--allow-skipped", help="Let these gates pass though rows were skipped.")
]
Junit: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE.xml", help="The gates as test results, for a CI system.")
]
Share: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Ask the judge about this share of the rows, such as 0.2: the most doubtful ones, and some at random.",
    ),
]
OnErrorOption: TypeAlias = Annotated[
    str, typer.Option(metavar="skip|stop", help="What a row that cannot be read does.")
]
FileFormat: TypeAlias = Annotated[
    str | None, typer.Option("--format", metavar="csv|jsonl|parquet", help="Of FILE; by default that of its ending.")
]
Delimiter: TypeAlias = Annotated[
    str | None, typer.Option(help="Of CSV cells; by default the most frequent in the header.")
]
Encoding: TypeAlias = Annotated[str, typer.Option(help="Of text.")]
ToTrace: TypeAlias = Annotated[
    bool, typer.Option("--to-trace", help="Send scores to the spans that rows name, by OTEL_*, or to the tool.")
]
TraceIdColumn: TypeAlias = Annotated[str | None, typer.Option(help="By default trace_id.")]
SpanIdColumn: TypeAlias = Annotated[str | None, typer.Option(help="By default span_id.")]
StartedColumn: TypeAlias = Annotated[str | None, typer.Option(help="By default started; ISO 8601 or Unix nanoseconds.")]
EndedColumn: TypeAlias = Annotated[str | None, typer.Option(help="By default ended; ISO 8601 or Unix nanoseconds.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar; a line every ten seconds.")]
