"""`ragspan demo`: seven questions about the handbook of a bicycle rental, answered by real frameworks with a scripted model.

Each integration registers an `AnsweringFramework` class in the entry-point group `ragspan_demo`.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple, Protocol

from opentelemetry import trace
from rich.console import Console
from rich.text import Text

from ragspan.application import configure
from ragspan.arguments import one_of
from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.judge_catalogue import EMBEDDED
from ragspan.telemetry.console import ConsoleEmitter
from ragspan.telemetry.providers import exporter_names

PROMPT = "Answer the question from the handbook.\n\n{context}\n\nQuestion: {question}"


class Way(enum.Enum):
    """How the application calls its framework."""

    CALL = enum.auto()
    AGENT = enum.auto()
    CLOSED_EARLY = enum.auto()  # of a stream


class Asked(NamedTuple):
    """A question, its framework and the way of the call."""

    framework: str
    title: str
    """The heading of this answer in the output."""
    question: str
    response: str
    """The model's scripted answer."""
    way: Way = Way.CALL


class AnsweringFramework(Protocol):
    """A framework's programs, with ragspan set up as by a user."""

    def answer(self, asked: Asked) -> str | None:
        """Return the framework's answer; None if a package that it needs is not installed."""


SCRIPT = (
    Asked(
        *("langchain", "LangChain chain: a good answer", "How do I return my bike?"),
        "Push it into the dock at any station and wait for the green light.",
    ),
    Asked(
        *("langchain", "LangChain chain: a wrong number", "How many days does it take until my deposit is released?"),
        "The deposit is released within 7 days after the bike is back.",
    ),
    Asked(
        *("langchain", "LangChain chain: an invention", "Can I take a bike abroad?"),
        "Yes. Partner shops in Denmark repair it, and the ferry costs nothing.",
    ),
    Asked(
        *("langchain", "LangChain chain: a refusal", "Do you rent tandems to children?"),
        "Children ride in a cargo bike. There is no information about tandems.",
    ),
    Asked(
        *("langchain", "LangChain stream, closed by its reader", "How far does an e-bike go?"),
        "An e-bike goes 60 kilometres on one charge.",
        Way.CLOSED_EARLY,
    ),
    Asked(
        *("langchain", "LangGraph agent: a good answer", "What if my bike breaks down?"),
        "Call the number on its frame, and we bring another bike within 45 minutes.",
        Way.AGENT,
    ),
    Asked(
        *("llama-index", "LlamaIndex query engine: a good answer", "May a child ride an e-bike?"),
        "No, children below 12 ride only in a cargo bike, with an adult.",
    ),
)


class Page(NamedTuple):
    """A page of the handbook."""

    name: str
    text: str


HANDBOOK = tuple(
    Page(name, text)
    for name, text in {
        "tickets": "A day ticket costs 12 euros and is valid for 24 hours. It includes a lock, a helmet and breakdown help.",
        "returns": "Return your bike at any of our 40 stations: push it into the dock and wait for the green light.",
        "deposit": "We hold a deposit of 50 euros on your card. The deposit is released within 3 days after the bike is back.",
        "children": "Children below 12 ride only in a cargo bike, with an adult. Cargo bikes can be booked at the harbour.",
        "breakdowns": "If a bike breaks down, call the number on its frame. We bring another bike within 45 minutes.",
        "e-bikes": "An e-bike goes 60 kilometres on one charge. Charge it at any dock with a blue lamp.",
    }.items()
)


def find(question: str, count: int = 3) -> list[tuple[Page, float]]:
    """The pages that share the most words with a question, best first, each with its share of the question's words."""
    wanted = _words(question)
    scored = [(page, len(wanted & _words(f"{page.name} {page.text}")) / len(wanted)) for page in HANDBOOK]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[\w-]+", text.lower())}


_GROUP = "ragspan_demo"
_MISSING = "no framework is installed that could answer: pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
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
    frameworks: dict[str, AnsweringFramework] = {name: load_part(_GROUP, name, _MISSING)() for name in chosen}
    tracer = trace.get_tracer("ragspan.demo")
    console = Console(highlight=False, soft_wrap=True)
    for number, asked in enumerate((one for one in SCRIPT if one.framework in frameworks), start=1):
        console.print(Text(f"{number} {asked.title}", style="bold cyan"))
        with tracer.start_as_current_span(asked.title):  # as a server's framework does
            answer = frameworks[asked.framework].answer(asked)
        if answer is None:
            console.print("  left out: pip install langchain brings the agent")
        configured.flush(timeout=120.0)
        console.print()
    judge = "the embedded judge" if settings.judge == EMBEDDED else settings.judge
    console.print(Text(_LEGEND.format(judge=judge), style="dim"))
    if not exported:
        console.print("\nThe same as spans: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ragspan demo")


def _chosen_frameworks(name: str | None) -> list[str]:
    installed = list(part_names(_GROUP))
    if not installed:
        raise ConfigurationError(_MISSING)
    one_of(*installed).or_none().check("--framework", name)
    return [name] if name else installed
