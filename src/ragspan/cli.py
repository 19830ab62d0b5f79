"""The command line: `ragspan demo`, `run`, `evaluate` and `doctor`; other packages bring further commands."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ragspan.commands import Commands
from ragspan.datasets.command import evaluate
from ragspan.exceptions import ConfigurationError

app = typer.Typer(
    name="ragspan",
    cls=Commands,
    help="Know in production whether a RAG system's answers are grounded.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001 - the option's value
    if is_wanted:
        typer.echo(f"ragspan {version('ragspan')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Know in production whether a RAG system's answers are grounded."""
    sys.path.append(str(Path.cwd()))  # where the module of RAGSPAN_REDACT may be


@app.command()
def demo(
    framework: Annotated[
        str | None, typer.Option(help="Which framework answers, such as langchain; all that are installed by default.")
    ] = None,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="Send the spans there, too: http://localhost:4318")
    ] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the output there.")] = None,
) -> None:
    """Answer eight questions from a small handbook, well and badly, and show each answer with its scores."""
    from rich.console import Console

    from ragspan.demo.runner import run_demo

    console = Console(highlight=False)
    try:
        delivered = run_demo(console, framework=framework, otlp=otlp, picture=picture)
    except ConfigurationError as error:
        typer.echo(f"ragspan demo: {error}", err=True)
        raise typer.Exit(2) from None
    if not delivered:
        raise typer.Exit(1)


app.command()(evaluate)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    program: Annotated[
        list[str] | None, typer.Argument(help="A Python file, and what it is to be called with.")
    ] = None,
    module: Annotated[str | None, typer.Option("-m", help="A module, as for python -m, in place of a file.")] = None,
) -> None:
    """Run a program with ragspan: score its LangChain and LlamaIndex answers without a change in it.

    The same as `ragspan.configure()` in its first line: set up by RAGSPAN_* and OTEL_* variables, scores on the console
    where these name no exporter. Servers run, too: ragspan run -m uvicorn app:app
    """
    from ragspan.application import configure

    arguments = program or []
    if module is None and not arguments:
        raise typer.BadParameter("name a program, such as app.py, or a module after -m")
    sys.path[0] = str(Path.cwd() if module is not None else Path(arguments[0]).resolve().parent)  # as python does
    is_there = Path(arguments[0]).exists() if module is None else _is_module(module)
    if not is_there:
        typer.echo(f"ragspan run: there is no {module or arguments[0]}", err=True)
        raise typer.Exit(2)
    try:
        configure()
    except ConfigurationError as error:
        typer.echo(f"ragspan run: {error}", err=True)
        raise typer.Exit(2) from None
    sys.argv = arguments if module is None else [module, *arguments]
    if module is None:
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


@app.command()
def doctor(
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="The longest that each check may take.")] = 10.0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all findings there, too.")] = None,
) -> None:
    """Find out why no scores are to be seen: settings, judge, exporters, endpoint, and one record through all of them.

    It reads RAGSPAN_* and OTEL_* as your application does, so run it with the same environment. It has the judge
    score one small record and sends its trace. No key, no header's value and no text of yours is shown.

    Exit codes: 0 all is well, though there may be warnings; 1 something failed, or no exporter is configured, so that no
    score goes anywhere; 2 a setting or an argument cannot be used.
    """
    if not 0 < timeout < float("inf"):
        raise typer.BadParameter("should be a number of seconds, more than 0", param_hint="--timeout")
    from rich.console import Console

    from ragspan.doctor import examine, exit_code
    from ragspan.doctor.report import as_json, shown, verdict

    console = Console(highlight=False)
    diagnoses = []
    for diagnosis in examine(timeout=timeout):
        diagnoses.append(diagnosis)
        console.print(shown(diagnosis))
    findings = [finding for diagnosis in diagnoses for finding in diagnosis.findings]
    console.print(verdict(findings))
    code = exit_code(findings)
    if json is not None:
        try:
            json.write_text(as_json(findings), encoding="utf-8")
        except OSError as error:
            typer.echo(f"ragspan doctor: --json: {error}", err=True)
            code = 2
    if any(diagnosis.is_hanging for diagnosis in diagnoses):
        sys.stdout.flush()
        os._exit(code)  # the interpreter's end would wait for what hangs
    raise typer.Exit(code)


if __name__ == "__main__":
    app()
