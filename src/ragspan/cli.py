"""The command line: `ragspan demo`, `run`, `evaluate`, `agree`, `failures`, `labels`, `judges`, `worker` and `doctor`."""

from __future__ import annotations

import importlib.util
import logging
import os
import runpy
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command as command_of

from ragspan.doctor import doctor, judges
from ragspan.evaluate.commands import agree, evaluate, failures, labels
from ragspan.exceptions import RagspanError
from ragspan.installed import load_part, part_names

_MISSING = {
    "nats": 'it is not installed: pip install "ragspan[nats]" for records from NATS, or "ragspan[receiver]" and --otlp for traces',
    "otlp": 'the receiver of traces is not installed: pip install "ragspan[receiver]"',
}


def _refuse(command: str, error: Exception | str) -> NoReturn:
    """End with the message, and the status for wrong usage."""
    typer.echo(f"ragspan {command}: {error}", err=True)
    raise typer.Exit(2) from None


class _Commands(TyperGroup):
    """The commands; an error of ragspan ends each of them with its message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RagspanError as error:
            _refuse(str(ctx.invoked_subcommand), error)


app = typer.Typer(
    name="ragspan",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(evaluate)
app.command()(failures)
app.command()(agree)
app.add_typer(labels, name="labels")
app.command()(judges)


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
) -> None:
    """Answer questions from a small handbook, well and badly, and show each answer with its scores.

    With OTEL_EXPORTER_OTLP_ENDPOINT the spans go there, too.
    """
    from ragspan.demo import run_demo

    run_demo(framework=framework)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    program: Annotated[list[str] | None, typer.Argument(help="A Python file and its arguments.")] = None,
    module: Annotated[str | None, typer.Option("-m", help="A module, as for python -m, in place of a file.")] = None,
    *,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not say what is scored, and where scores go.")
    ] = False,
) -> None:
    """Run a program with ragspan: score its LangChain and LlamaIndex answers without a change in it.

    The same as `ragspan.configure()` in its first line: set up by RAGSPAN_* and OTEL_* variables, scores on the console
    where these name no exporter. Servers run, too, with the processes that they start: ragspan run -m uvicorn app:app
    """
    from ragspan.application import configure, frameworks
    from ragspan.config import OF_RAGSPAN_RUN

    arguments = program or []
    if module is None and not arguments:
        raise typer.BadParameter("name a program, such as app.py, or a module after -m")
    sys.path[0] = str(Path.cwd() if module is not None else Path(arguments[0]).resolve().parent)  # as python does
    try:
        is_there = Path(arguments[0]).exists() if module is None else importlib.util.find_spec(module) is not None
        configured = configure() if is_there else None
    except ImportError as error:
        _refuse("run", error)
    if configured is None:
        _refuse("run", f"there is no file {arguments[0]}" if module is None else f"there is no module {module}")
    if not quiet:
        typer.echo(f"ragspan: {configured.line}", err=True)
    # Each Python interpreter that the program starts imports the `sitecustomize` there; a fork needs nothing of this.
    os.environ[OF_RAGSPAN_RUN] = os.pathsep.join([sys.path[0], *frameworks()])
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([_AT_START, *filter(None, others)]))
    sys.argv = arguments if module is None else [module, *arguments]
    try:
        if module is None:
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever the program raises
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in _OUR_FRAMES:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)  # as of `python app.py`
        raise typer.Exit(130 if isinstance(error, KeyboardInterrupt) else 1) from None


_OUR_FRAMES = {__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>"}
_AT_START = str(Path(__file__).parent / "at_start")


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def worker(context: typer.Context) -> None:
    """Score the answers that other processes hand over: records from NATS JetStream, or traces where --otlp is given."""
    wanted = ["otlp" if any(one.startswith("--otlp") for one in context.args) else "nats"]
    if context.args == ["--help"]:
        wanted = list(part_names("ragspan_worker")) or wanted
    # Not INFO for all loggers: the judges' HTTP client logs every single request.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("ragspan").setLevel(logging.INFO)
    for name in wanted:
        program = command_of(load_part("ragspan_worker", name, _MISSING[name]))
        program.main(context.args, prog_name="ragspan worker", standalone_mode=len(wanted) == 1)


app.command()(doctor)


if __name__ == "__main__":
    app()
