"""The command `ragspan labels pull`: what people said of answers in a tool, as a table for `ragspan agree`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ragspan.datasets.sources import Opinion, StoredAnswer

_GOOD_SCORE = 0.5

labels = typer.Typer(help="What people say of answers.", no_args_is_help=True)


@labels.callback()
def _labels() -> None:
    """What people say of answers."""


@labels.command()
def pull(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="phoenix or mlflow; its own variables say where it is.")],
    *,
    project: Annotated[str, typer.Option(help="Of the tool; MLflow's experiment. A name or an id.")],
    name: Annotated[str, typer.Option(help="What the annotation or assessment is called that people gave.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.jsonl", help="The table.")],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only traces that began then or later: 2026-11-23T08:00:00Z.")
    ] = None,
) -> None:
    """Write the answers that people annotated in a tool to a table, for ragspan agree.

    A label is a word such as yes or no, pass or fail, supported or unsupported; any other counts by its score, from .5 on as
    good. What was said last counts. What judges wrote is left out.

    Exit codes: 0 done; 2 wrong usage, or the tool cannot be read.
    """
    from ragspan.datasets.sources import stored_answers
    from ragspan.exceptions import RagspanError

    try:
        written, unclear = _write(output, stored_answers(tool, project, since, name))
    except RagspanError as error:
        typer.echo(f"ragspan labels pull: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{written:,} answers with a label are in {output}")
    if unclear:
        typer.echo(f"{unclear:,} more have a label {name!r} that says neither good nor bad, and no score", err=True)


def _write(output: Path, answers: Iterator[StoredAnswer]) -> tuple[int, int]:
    """How many answers were written, and how many have a label that says nothing."""
    import msgspec

    from ragspan.datasets.result_file import replacing
    from ragspan.exceptions import ConfigurationError, TableError

    if output.suffix != ".jsonl":
        raise ConfigurationError(f"--output is {str(output)!r}, but the table is JSONL: name it {output.stem}.jsonl")
    written = unclear = 0
    try:
        with replacing(output) as unfinished, unfinished.open("wb") as file:
            for answer in answers:
                if not answer.opinions:
                    continue
                is_good = _is_good(answer.opinions[-1])
                if is_good is None:
                    unclear += 1
                else:
                    written += 1
                    file.write(msgspec.json.encode(_row(answer, is_good=is_good)) + b"\n")
    except OSError as error:
        raise TableError(f"{output} cannot be written: {error.strerror or error}") from None
    return written, unclear


def _is_good(opinion: Opinion) -> bool | None:
    from ragspan.labelled import BAD, GOOD

    word = (opinion.label or "").strip().lower()
    if word in GOOD or word in BAD:
        return word in GOOD
    return None if opinion.score is None else opinion.score >= _GOOD_SCORE


def _row(answer: StoredAnswer, *, is_good: bool) -> dict[str, Any]:
    record, span = answer.record, answer.record.parent
    return {
        "question": record.question,
        "contexts": None if record.contexts is None else [context.text for context in record.contexts],
        "response": record.response,
        "label": "pass" if is_good else "fail",
        "trace_id": span and format(span.trace_id, "032x"),
        "span_id": span and format(span.span_id, "016x"),
        "record_id": record.record_id,
    }
