"""Prints each scored answer as a card, for users who have no tracing tool yet: on a terminal, or in a notebook's cell.

A cell of Jupyter that asks gets an output of its own, with an id; what comes later replaces its content, wherever the notebook is then.
Which cell asked follows from when the answer began: cells run one after the other. Nothing of it leaves the machine, so a card shows question, response and reasons unless `capture_content` is set to false.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ragspan.arguments import counted
from ragspan.config import Settings
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord, each_judge
from ragspan.records import RagRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.emitter_protocols import Engine, ScoreEmitter
from ragspan.telemetry.values import bounded, legible

_COLOURS = {"pass": "green", "fail": "red"}
_MAX_SHOWN = 200  # characters of a question or a response
_MAX_REASON, _MAX_FINDING = 400, 100  # characters of what explains a failing score, and one that passes
_AFTER_FIRST_SENTENCE = re.compile(r"(?<=\.) .*", re.DOTALL)
_BACKGROUND = {"metadata": "metadata text", "tool": "tool result", "history": "earlier message", "other": "other text"}
_MOST_CELLS = 100  # that are remembered
_WAITING = Text(
    "ragspan: scores appear here when they come; ragspan.default_engine().flush(30) waits for them", style="dim"
)


@dataclass(kw_only=True, eq=False, repr=False)
class ConsoleEmitter(ContentPolicy, ScoreEmitter):
    """Prints scored answers, in colours on a terminal and as plain lines elsewhere; in Jupyter in the cell that asked.

    Texts are shown unless `capture_content`, or `RAGSPAN_CAPTURE_CONTENT`, is false: they stay on the machine.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    file: TextIO | None = None
    """Prints there; None means the notebook's cell, or the `sys.stdout` of the moment."""

    def __post_init__(self) -> None:
        if self.capture_content is None and Settings.from_environment().capture_content is None:
            self.capture_content = True
        super().__post_init__()
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        is_notebook = self.file is None and getattr(shell, "kernel", None) is not None
        self._cells = _Cells(shell) if is_notebook else None

    def is_used_by(self, engine: Engine) -> None:
        """Know in which cell of a notebook this engine's answers were asked for."""
        if self._cells is not None:
            self._cells.watch(engine)

    def emit(self, scored: ScoredRecord) -> None:
        """Print the answer with its outcomes, in one write. If the file is closed, it is not printed."""
        file, card = self.file or sys.stdout, Text("\n").join(self._lines(scored))
        if self._cells is not None:
            self._cells.show(card, asked_at_ns=scored.record.started_ns)
            return
        with contextlib.suppress(OSError, ValueError):
            console = Console(file=file, highlight=False)
            with console.capture() as captured:  # Rich ends the program when it writes to a closed pipe
                console.print(card, soft_wrap=True)
            file.write(captured.get())
            file.flush()

    def _lines(self, scored: ScoredRecord) -> Iterator[Text]:
        record, outcomes, is_shown = scored.record, scored.outcomes, self.allows()
        title = Text(shortened(record.name), style="bold")
        title.append(f"  {(record.ended_ns - record.started_ns) / 1e6:.0f} ms", style="cyan")
        title.append("" if record.status == "complete" else f"  {record.status}", style="yellow")
        title.append("  the response is a refusal" if scored.refusal else "", style="yellow")
        yield title.append("  late scores" if scored.late else "", style="yellow")
        if not scored.late:
            yield from text_lines(record) if is_shown else [Text(f"  {'record':<20} {shortened(record.record_id)}")]
            yield Text(f"  {'contexts':<20} ").append(_contexts_found(record), style="dim")
        reasons = {None if isinstance(one, Score) else _reason_of(one) for one in outcomes.values()}
        if len(outcomes) > 1 and len(reasons) == 1 and (reason := next(iter(reasons))):  # one line for all metrics
            yield Text(f"  {'not scored':<20} -    ").append(shortened(reason), style="yellow")
            outcomes = {}
        said: list[str] = []
        for metric, outcome in outcomes.items():
            new = explanation = self.explanation(outcome) or "" if isinstance(outcome, Score) else ""
            for earlier in said:  # a finding is not shown twice
                new = "" if new == earlier else new.replace(f" ({earlier})", "")
            yield Text("  ").append_text(outcome_line(metric, outcome, new.strip()))
            said += [explanation] if explanation else []
        named = each_judge(outcome.judge for outcome in outcomes.values() if isinstance(outcome, Score))
        if named:
            yield Text(f"  {'judged by':<20} {', '.join(map(shortened, named))}", style="dim")


def text_lines(record: RagRecord) -> Iterator[Text]:
    """The question and the response, as far as there are any."""
    for name, text in (("question", record.question), ("response", record.response)):
        if text:
            yield Text(f"  {name:<20} ").append(shortened(text), style="italic")


def _contexts_found(record: RagRecord) -> str:
    """How many contexts there are, and where they came from."""
    others = Counter(_BACKGROUND[one.kind] for one in record.background)
    background = ", ".join(counted(number, kind) for kind, number in others.items())
    if record.background_is_prompt:
        return "the text of the prompts"
    if record.contexts:
        searches = dict.fromkeys(retrieval.data_source_id or retrieval.name for retrieval in record.retrievals)
        names = ", ".join(map(shortened, searches)) or "the program"
        documents = f"{counted(len(record.contexts), 'document')} from {names}"
        return f"{documents}; {background}" if background else documents
    if background or record.contexts is not None:
        return f"no documents; {background}" if background else "none"
    why = f": {record.contexts_unknown}" if record.contexts_unknown else ""
    why += "; name what searches: RAGSPAN_RETRIEVAL_TOOLS, record_contexts()" if why == ": unmarked_text" else ""
    return f"not known{why}"


def outcome_line(metric: str, outcome: Outcome, explanation: str | None) -> Text:
    """One line for one metric: the score, its label and its explanation, or why there is no score."""
    line = Text(f"{metric:<20}")
    if not isinstance(outcome, Score):
        style = "yellow" if isinstance(outcome, MetricFailure) else "dim"
        return line.append(f" -    {shortened(_reason_of(outcome))}", style=style)
    line.append(f" {outcome.value:.2f} ").append(outcome.label or "", style=_COLOURS.get(outcome.label or "", ""))
    if outcome.label == "pass" and explanation:  # the first sentence will do
        explanation = shortened(_AFTER_FIRST_SENTENCE.sub("", explanation), _MAX_FINDING)
    return line.append(f"  {shortened(explanation, _MAX_REASON)}", style="dim") if explanation else line


def _reason_of(outcome: Outcome) -> str:
    """Why there is no score, in one of few words."""
    if isinstance(outcome, NotApplicable) and outcome.detail:
        return f"{outcome.reason}: {outcome.detail}"
    if isinstance(outcome, MetricFailure):
        return f"{outcome.error_type} (HTTP {outcome.status})" if outcome.status else outcome.error_type
    return getattr(outcome, "reason", "")


def shortened(text: str, length: int = _MAX_SHOWN) -> str:
    """A text on one line, cut if it is longer than `length` characters."""
    return legible(bounded(" ".join(text.split()), length))


@dataclass(eq=False)
class _Cell:
    began_ns: int
    submitted: int
    """Answers that the engines had been given when it began."""
    cards: list[Text] = field(default_factory=list)
    output_id: str | None = None


class _Cells:
    """The cells of the notebook whose kernel this process is."""

    def __init__(self, shell: Any) -> None:
        self._display: Any = importlib.import_module("IPython.display").display
        self._lock = threading.Lock()
        self._engines: list[Engine] = []
        self.watch = self._engines.append
        """Know of the answers that this engine is given, so that the cell of one has its place."""
        self._cells = [_Cell(0, 0)]
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def show(self, card: Text, *, asked_at_ns: int) -> None:
        """Show a card in the cell that was running at this time."""
        with self._lock:
            cell = next((one for one in reversed(self._cells) if one.began_ns <= asked_at_ns), self._cells[0])
            cell.cards.append(card)
            self._draw(cell)

    def _begin(self, *_: Any) -> None:
        with self._lock:
            self._cells.append(_Cell(time.time_ns(), self._submitted()))
            del self._cells[:-_MOST_CELLS]

    def _end(self, *_: Any) -> None:
        """The notebook shows what a cell prints while it runs, so a place for what comes later is made now."""
        with self._lock:
            cell = self._cells[-1]
            if cell.output_id is None and self._submitted() > cell.submitted:
                self._draw(cell)

    def _submitted(self) -> int:
        return sum(engine.stats().submitted for engine in self._engines)

    def _draw(self, cell: _Cell) -> None:
        is_new, cell.output_id = cell.output_id is None, cell.output_id or uuid.uuid4().hex
        self._display(Text("\n").join(cell.cards or [_WAITING]), display_id=cell.output_id, update=not is_new)
