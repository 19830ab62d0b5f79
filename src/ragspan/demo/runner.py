"""Runs the demo as an application with `ragspan.configure`, whose console shows each answer with its scores."""

from __future__ import annotations

import importlib.metadata

from opentelemetry import trace
from rich.console import Console
from rich.text import Text

from ragspan.application import configure
from ragspan.arguments import one_of
from ragspan.config import Settings
from ragspan.demo import SCRIPT, AnsweringFramework
from ragspan.exceptions import ConfigurationError
from ragspan.judges.judge_catalogue import EMBEDDED
from ragspan.telemetry.console import ConsoleEmitter
from ragspan.telemetry.environment import exporter_names

_GROUP = "ragspan_demo"
_FLUSH_SECONDS = 120.0
_LEGEND = """\
Scores by {judge}, from 0 to 1; pass or fail by a threshold:
context_adherence    does the response keep to its contexts?
faithfulness         the share of its claims that the contexts support"""


def run_demo(*, framework: str | None = None) -> None:
    """Answer every question and print the answers with their scores.

    Raises:
        ConfigurationError: the argument or a `RAGSPAN_*` variable is wrong, or something is not installed.
    """
    settings = Settings.from_environment()
    chosen = _chosen_frameworks(framework)
    exported = [name for name in settings.emitters if name != "console"] if exporter_names("traces") else []
    configured = configure(emitters=[*exported, ConsoleEmitter(capture_content=True)])
    frameworks: dict[str, AnsweringFramework] = {name: point.load()() for name, point in chosen.items()}
    tracer = trace.get_tracer("ragspan.demo")
    console = Console(highlight=False, soft_wrap=True)
    for number, asked in enumerate((one for one in SCRIPT if one.framework in frameworks), start=1):
        console.print(Text(f"{number} {asked.title}", style="bold cyan"))
        with tracer.start_as_current_span(asked.title):  # as a server's framework does
            answer = frameworks[asked.framework].answer(asked)
        if answer is None:
            console.print("  left out: pip install langchain brings the agent")
        configured.flush(_FLUSH_SECONDS)
        console.print()
    judge = "the embedded judge" if settings.judge == EMBEDDED else settings.judge
    console.print(Text(_LEGEND.format(judge=judge), style="dim"))
    if not exported:
        console.print("\nThe same as spans: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ragspan demo")


def _chosen_frameworks(name: str | None) -> dict[str, importlib.metadata.EntryPoint]:
    installed = {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}
    if not installed:
        raise ConfigurationError(
            "no framework is installed that could answer: pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
        )
    one_of(*sorted(installed)).or_none().check("--framework", name)
    return {key: installed[key] for key in ([name] if name else sorted(installed))}
