"""The command line: `ragspan demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragspan.exceptions import ConfigurationError

app = typer.Typer(
    name="ragspan",
    help="Know in production whether a RAG system's answers are grounded.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Know in production whether a RAG system's answers are grounded."""


@app.command()
def demo(
    framework: Annotated[
        str | None, typer.Option(help="Which framework answers, such as langchain; all that are installed by default.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A real model answers, such as openai:gpt-4o-mini; else an embedded one.")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="Send the spans there, too: http://localhost:4318")
    ] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw some of the output there.")] = None,
) -> None:
    """Answer a dozen questions about ragspan and show every answer's trace with its scores."""
    from rich.console import Console

    from ragspan.demo.runner import run_demo

    console = Console(highlight=False)
    try:
        delivered = run_demo(console, framework=framework, model=model, otlp=otlp, picture=picture)
    except ConfigurationError as error:
        typer.echo(f"ragspan demo: {error}", err=True)
        raise typer.Exit(2) from None
    if not delivered:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
