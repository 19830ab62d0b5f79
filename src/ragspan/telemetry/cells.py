"""The cells of a Jupyter notebook: scores appear in the output of the cell that asked, also while another cell runs.

A cell that asks gets an output of its own, with an id; what comes later replaces its content, wherever the notebook is then. Which
cell asked follows from when the answer began: cells run one after the other.
"""

from __future__ import annotations

import importlib
import io
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from ragspan.telemetry.emitter_protocols import Engine

_MOST = 100  # cells that are remembered
_WIDTH = 120
_WAITING = Text("ragspan: the scores of this cell's answers appear here", style="dim")
_HTML = '<pre style="white-space:pre-wrap;margin:0;line-height:1.35">{code}</pre>'


@dataclass(eq=False)
class _Cell:
    began_ns: int
    submitted: int
    """Answers that the engines had been given when it began."""
    cards: list[Text] = field(default_factory=list)
    output_id: str | None = None


class Cells:
    """The cells of the notebook that this process runs."""

    def __init__(self, shell: Any) -> None:
        self._display: Any = importlib.import_module("IPython.display").display
        self._lock = threading.Lock()
        self._engines: list[Engine] = []
        self._cells = [_Cell(0, 0)]
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    @classmethod
    def of_notebook(cls) -> Cells | None:
        """Those of this process; None where it is not a notebook's kernel."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if getattr(shell, "kernel", None) is None:
            return None
        made: Cells = shell.__dict__.setdefault("_ragspan_cells", None) or cls(shell)
        shell.__dict__["_ragspan_cells"] = made
        return made

    def watch(self, engine: Engine) -> None:
        """Know of the answers that this engine is given, so that the cell of one has its place."""
        self._engines.append(engine)

    def show(self, card: Text, *, asked_at_ns: int) -> None:
        """Show a card in the cell that was running at this time."""
        with self._lock:
            cell = next((one for one in reversed(self._cells) if one.began_ns <= asked_at_ns), self._cells[0])
            cell.cards.append(card)
            self._draw(cell)

    def _begin(self, *_: Any) -> None:
        with self._lock:
            self._cells.append(_Cell(time.time_ns(), self._submitted()))
            del self._cells[:-_MOST]

    def _end(self, *_: Any) -> None:
        """The notebook shows what a cell prints while it runs, so a place for what comes later is made now."""
        with self._lock:
            cell = self._cells[-1]
            if cell.output_id is None and self._submitted() > cell.submitted:
                self._draw(cell)

    def _submitted(self) -> int:
        return sum(engine.stats().submitted for engine in self._engines)

    def _draw(self, cell: _Cell) -> None:
        shown = Text("\n").join(cell.cards or [_WAITING])
        console = Console(file=io.StringIO(), record=True, width=_WIDTH, highlight=False, force_jupyter=False)
        console.print(shown, soft_wrap=True)
        html = console.export_html(inline_styles=True, code_format=_HTML, clear=False)
        is_new = cell.output_id is None
        cell.output_id = cell.output_id or uuid.uuid4().hex
        content = {"text/plain": shown.plain, "text/html": html}
        self._display(content, raw=True, display_id=cell.output_id, update=not is_new)
