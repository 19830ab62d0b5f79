"""Prints each scored answer as a card, for users who have no tracing tool yet: on a terminal, or in a notebook's cell.

Nothing of it leaves the machine, so a card shows question, response and reasons unless `capture_content` is set to false.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from ragspan.config import Settings
from ragspan.counted import counted
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry.cells import Cells
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.emitter_protocols import Engine, ScoreEmitter
from ragspan.telemetry.values import bounded, legible

_COLOURS = {"pass": "green", "fail": "red"}
_MAX_SHOWN = 200  # characters of a question or a response
_MAX_REASON, _MAX_FINDING = 400, 100  # characters of what explains a failing score, and one that passes
_PIPE_WIDTH = 160  # a pipe has no width, and lines that are cut at 80 are hard to search


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
        self._cells = Cells.of_notebook() if self.file is None else None

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
            console = Console(file=file, highlight=False, width=None if file.isatty() else _PIPE_WIDTH)
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
            yield from text_lines(record) if is_shown else ()
            yield Text(f"  {'contexts':<20} ").append(_contexts_found(record), style="dim")
        reasons = {None if isinstance(one, Score) else _reason_of(one) for one in outcomes.values()}
        if len(outcomes) > 1 and len(reasons) == 1 and (reason := next(iter(reasons))):  # one line for all metrics
            yield Text(f"  {'not scored':<20} -    ").append(shortened(reason), style="yellow")
            outcomes = {}
        said: set[str | None] = set()
        for metric, outcome in outcomes.items():
            explanation = self.explanation(outcome) if isinstance(outcome, Score) else None
            yield Text("  ").append_text(outcome_line(metric, outcome, None if explanation in said else explanation))
            said.add(explanation)
        judges = dict.fromkeys(outcome.judge for outcome in outcomes.values() if isinstance(outcome, Score))
        if named := [shortened(judge) for judge in judges if judge]:
            yield Text(f"  {'judged by':<20} {', '.join(named)}", style="dim")


def text_lines(record: RagRecord) -> Iterator[Text]:
    """The question and the response, as far as there are any."""
    for name, text in (("question", record.question), ("response", record.response)):
        if text:
            yield Text(f"  {name:<20} ").append(shortened(text), style="italic")


def _contexts_found(record: RagRecord) -> str:
    """How many contexts there are, and where they came from."""
    if record.contexts is None:
        why = f": {record.contexts_unknown}" if record.contexts_unknown else ""
        return "the text of the prompts" if record.background_is_prompt else f"not known{why}"
    if not record.contexts:
        return "none"
    searches = dict.fromkeys(retrieval.data_source_id or retrieval.name for retrieval in record.retrievals)
    names = ", ".join(map(shortened, searches)) or "the program"
    return f"{counted(len(record.contexts), 'document')} from {names}"


def outcome_line(metric: str, outcome: Outcome, explanation: str | None) -> Text:
    """One line for one metric: the score, its label and its explanation, or why there is no score."""
    line = Text(f"{metric:<20}")
    if not isinstance(outcome, Score):
        style = "yellow" if isinstance(outcome, MetricFailure) else "dim"
        return line.append(f" -    {shortened(_reason_of(outcome))}", style=style)
    line.append(f" {outcome.value:.2f} ").append(outcome.label or "", style=_COLOURS.get(outcome.label or "", ""))
    most = _MAX_FINDING if outcome.label == "pass" else _MAX_REASON
    return line.append(f"  {shortened(explanation, most)}", style="dim") if explanation else line


def _reason_of(outcome: Outcome) -> str:
    """Why there is no score, in one of few words."""
    if isinstance(outcome, NotApplicable) and outcome.reason == "answer_error" and outcome.detail:
        return f"answer_error: {outcome.detail}"
    if isinstance(outcome, MetricFailure):
        return f"{outcome.error_type} (HTTP {outcome.status})" if outcome.status else outcome.error_type
    return getattr(outcome, "reason", "")


def shortened(text: str, length: int = _MAX_SHOWN) -> str:
    """A text on one line, cut if it is longer than `length` characters."""
    return legible(bounded(" ".join(text.split()), length))
