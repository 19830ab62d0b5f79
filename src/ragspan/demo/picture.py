"""Draws the demo's output for the README, as an SVG that loads nothing from anywhere."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from ragspan.demo.report import Session, summary, trace_trees
from ragspan.demo.script import SCRIPT, Manner

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


def draw(sessions: Sequence[Session], *, judge: str) -> str:
    """A grounded answer's trace of the first framework, an ungrounded one's of the last, and the summary of all."""
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    for session, place in ((sessions[0], _GROUNDED), (sessions[-1], _UNGROUNDED)):
        console.print(list(trace_trees(session))[place])
        console.print()
    console.print(summary(sessions, judge=judge))
    return console.export_svg(title="ragspan demo", code_format=_SVG, unique_id="ragspan")


_GROUNDED = 0
_UNGROUNDED = next(place for place, asked in enumerate(SCRIPT) if asked.manner is Manner.UNGROUNDED)
