"""Prints each scored answer in a few lines, for users who have no tracing tool yet."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.text import Text

from ragspan.counted import counted
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry.answer_spans import answer_name
from ragspan.telemetry.content import ContentOptions
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.telemetry.values import bounded, legible

_COLOURS = {"pass": "green", "fail": "red"}
_MAX_SHOWN = 110  # characters of a question or a response
_MAX_REASON = 400  # characters of an explanation, which says why an answer failed: a terminal wraps it
_HINT = "  Texts are left out here: RAGSPAN_CAPTURE_CONTENT=true shows questions, responses and full reasons."
_PIPE_WIDTH = 160  # a pipe has no width, and lines that are cut at 80 are hard to search


@dataclass(kw_only=True, eq=False, repr=False)
class ConsoleEmitter(ContentOptions, ScoreEmitter):
    """Prints scored answers, in colours on a terminal and as plain lines elsewhere.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    file: TextIO | None = None
    """Prints there; None means the `sys.stdout` of the moment."""
    _has_hinted: bool = field(init=False, default=False)

    def emit(self, scored: ScoredRecord) -> None:
        """Print the answer with its outcomes, in one write. If the file is closed, it is not printed."""
        file = self.file or sys.stdout
        with contextlib.suppress(OSError, ValueError):
            console = Console(file=file, highlight=False, width=None if file.isatty() else _PIPE_WIDTH)
            rendered = io.StringIO()  # Rich ends the program when it writes to a closed pipe
            Console(file=rendered, highlight=False, width=console.width, force_terminal=console.is_terminal).print(
                Text("\n").join(self._lines(scored)), soft_wrap=True
            )
            file.write(rendered.getvalue())
            file.flush()

    def _lines(self, scored: ScoredRecord) -> Iterator[Text]:
        yield _title(scored)
        if self.content.allows("spans") and not scored.late:
            yield from text_lines(scored.record)
        reasons = [None if isinstance(outcome, Score) else _reason(outcome) for outcome in scored.outcomes.values()]
        if len(reasons) > 1 and reasons[0] and len({*reasons}) == 1:
            yield Text(f"  {'not scored':<20} -    ").append(shortened(reasons[0]), style="yellow")
            return
        for metric, outcome in scored.outcomes.items():
            explanation = self.content.explanation(outcome) if isinstance(outcome, Score) else None
            yield Text("  ").append_text(outcome_line(metric, outcome, explanation))
        if self._should_hint(scored):
            self._has_hinted = True
            yield Text(_HINT, style="dim")

    def _should_hint(self, scored: ScoredRecord) -> bool:
        """True for the first failing answer whose reasons are not shown in full."""
        if self._has_hinted or self.content.explanations is not None or self.content.allows("spans"):
            return False
        return any(isinstance(outcome, Score) and outcome.label == "fail" for outcome in scored.outcomes.values())


def text_lines(record: RagRecord) -> Iterator[Text]:
    """The question and the response, as far as there are any."""
    for name, text in (("question", record.question), ("response", record.response)):
        if text:
            yield Text(f"  {name:<20} ").append(shortened(text), style="italic")


def outcome_line(metric: str, outcome: Outcome, explanation: str | None) -> Text:
    """One line for one metric: the score, its label and why it failed, or why there is no score."""
    line = Text(f"{metric:<20}")
    if not isinstance(outcome, Score):
        style = "yellow" if isinstance(outcome, MetricFailure) else "dim"
        return line.append(f" -    {shortened(_reason(outcome))}", style=style)
    line.append(f" {outcome.value:.2f} ").append(outcome.label or "", style=_COLOURS.get(outcome.label or "", ""))
    if outcome.label == "fail" and explanation:
        line.append(f"  {shortened(explanation, _MAX_REASON)}", style="dim")
    return line


def _reason(outcome: NotApplicable | MetricFailure) -> str:
    return outcome.error_type if isinstance(outcome, MetricFailure) else outcome.reason


def shortened(text: str, length: int = _MAX_SHOWN) -> str:
    """A text on one line, cut if it is longer than `length` characters."""
    return legible(bounded(" ".join(text.split()), length))


def _title(scored: ScoredRecord) -> Text:
    record = scored.record
    title = Text(shortened(answer_name(record)), style="bold")
    title.append(f"  {(record.ended_ns - record.started_ns) / 1e6:.0f} ms", style="cyan")
    title.append(f"  {record.status}", style="" if record.status == "complete" else "yellow")
    title.append(f"  {_count(record)}", style="dim")
    judges = {
        outcome.judge: None for outcome in scored.outcomes.values() if isinstance(outcome, Score) and outcome.judge
    }
    if judges:
        title.append(f"  judged by {shortened(', '.join(judges))}", style="dim")
    if scored.refusal:
        title.append("  refusal", style="yellow")
    if scored.late:
        title.append("  late scores", style="yellow")
    return title


def _count(record: RagRecord) -> str:
    if record.contexts is None:
        return "contexts unknown"
    return counted(len(record.contexts), "context")
