"""Shows an answer as people read it: what was asked and said, its spans, and a line for each metric. Draws it for the README."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ragspan.demo.script import Asked
from ragspan.outcomes import NotApplicable, Outcome, Score, ScoredRecord
from ragspan.telemetry.console import outcome_line, shortened
from ragspan.telemetry.step_spans import step_name


def shown_answer(number: int, asked: Asked, got: str, scored: Sequence[ScoredRecord]) -> Iterator[Text]:
    """The lines about one answer.

    Args:
        number: of the answer in the script.
        asked: what was asked.
        got: what the caller got, which may be less than the model would have said.
        scored: the record with its outcomes, and with those that came late.
    """
    record = scored[0].record
    outcomes = {metric: outcome for part in scored for metric, outcome in part.outcomes.items()}
    yield Text(f"{number} {asked.title}", style="bold")
    yield Text(f"  {asked.question}")
    yield Text(f"  “{got}”", style="italic")
    spans = [record.name, *map(step_name, sorted(record.steps, key=lambda step: step.started_ns))]
    milliseconds = (record.ended_ns - record.started_ns) / 1e6
    yield Text(f"  {' > '.join(shortened(span) for span in spans)}  {milliseconds:.0f} ms", style="cyan")
    reasons = {outcome.reason if isinstance(outcome, NotApplicable) else None for outcome in outcomes.values()}
    if len(outcomes) > 1 and len(reasons) == 1 and None not in reasons:
        yield Text(f"  no metric applies: {reasons.pop()}", style="dim")
        return
    for metric, outcome in outcomes.items():
        explanation = outcome.explanation if isinstance(outcome, Score) else None
        yield Text("  ").append_text(outcome_line(metric, outcome, explanation))
    if any(part.refusal for part in scored):
        yield Text("  ^ a refusal, and marked as one on its span", style="yellow")
    if asked.is_wrong and _passes(outcomes):
        yield Text("  ^ wrong: the embedded judge does not see it. An LLM judge may.", style="yellow")


def _passes(outcomes: Mapping[str, Outcome]) -> bool:
    faithfulness = outcomes.get("faithfulness")
    return isinstance(faithfulness, Score) and faithfulness.label == "pass" and faithfulness.judge == "overlap"


def legend(judge: str) -> Iterator[Text]:
    """What the lines mean."""
    yield Text(f"Scores by the {judge} judge, from 0 to 1; pass or fail by a threshold:")
    yield Text("context_adherence    does the answer keep to its contexts?", style="dim")
    yield Text("completeness         does it say what the contexts say about the question?", style="dim")
    yield Text("context_utilization  did the useful contexts come first?", style="dim")
    yield Text("faithfulness         the share of its claims that the contexts support", style="dim")


def draw(lines: Sequence[Text]) -> str:
    """These lines of the demo, as an SVG that loads nothing from anywhere."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ellipsis")
    return console.export_svg(title="ragspan demo", code_format=_SVG, unique_id="ragspan")


_SVG = """<svg class="rich-terminal" xml:space="preserve" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
