"""How far an evaluation is, on stderr: a bar on a terminal, else a line every so often.

Only the thread that evaluates calls in; the bar is drawn when a row is done and the last drawing is old enough.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from ragspan.datasets.run import Standing

if TYPE_CHECKING:
    from rich.progress import Progress

_BAR_PAUSE = 0.2  # seconds between two drawings
_LINE_PAUSE = 10.0  # seconds between two lines
_MINUTE = 60
_HOUR = 3600


@contextlib.contextmanager
def progress_on_stderr(
    *, quiet: bool = False, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Standing], None]]:
    """What to call with each row that is done.

    Args:
        quiet: a line every so often, even on a terminal.
        file: in place of stderr.
        clock: seconds that do not go backwards.
    """
    target = sys.stderr if file is None else file
    if quiet or not target.isatty():
        yield Display(lambda text, _: print(text, file=target, flush=True), pause=_LINE_PAUSE, clock=clock)
        return
    with _bar(target) as bar:
        task = bar.add_task("", total=1.0)
        yield Display(
            lambda text, share: bar.update(task, description=text, completed=share or 0.0),
            pause=_BAR_PAUSE,
            clock=clock,
        )


class Display:
    """Shows how far it is, but not more often than every few seconds.

    Args:
        show: given the words, and the share that is done.
        pause: seconds from one showing to the next, and to the first.
        clock: seconds that do not go backwards.
    """

    def __init__(
        self, show: Callable[[str, float | None], object], *, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show = show
        self._pause = pause
        self._clock = clock
        self._pace = Pace(clock)
        self._next = clock() + pause

    def __call__(self, standing: Standing) -> None:
        self._pace.note(standing)
        if self._clock() >= self._next:
            self._next = self._clock() + self._pause
            self._show(shown(standing, self._pace), self._pace.share)


class Pace:
    """How fast rows are done, counted from the first one that an earlier run had not done."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._done_before = 0
        self._share_before = 0.0
        self._done = 0
        self._share: float | None = None

    def note(self, standing: Standing) -> None:
        self._done, self._share = standing.done, standing.share
        if standing.resumed == standing.done:
            self._began, self._done_before = self._clock(), standing.done
            self._share_before = standing.share or 0.0

    @property
    def share(self) -> float | None:
        return self._share

    @property
    def rows_per_second(self) -> float | None:
        seconds = self._clock() - self._began
        return (self._done - self._done_before) / seconds if seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """None where the table's size, or the pace, is not known."""
        gone = (self._share or 0.0) - self._share_before
        if self._share is None or gone <= 0:
            return None
        return (self._clock() - self._began) * (1 - self._share) / gone


def shown(standing: Standing, pace: Pace) -> str:
    """All of it in a line."""
    parts = [f"{standing.done:,} rows"]
    if pace.share is not None:
        parts[0] += f" ({pace.share:.0%})"
    if pace.rows_per_second:
        parts.append(f"{pace.rows_per_second:,.1f} rows/s")
    if pace.seconds_left is not None:
        parts.append(f"{duration(pace.seconds_left)} left")
    parts += [f"{metric} {mean:.3f}" for metric, mean in standing.tally.means().items() if mean is not None]
    if standing.bad_row_count:
        parts.append(f"{standing.bad_row_count:,} bad")
    if standing.usage.usd is not None:
        parts.append(f"${standing.usage.usd:.4f}")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole >= _HOUR:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _MINUTE} min {whole % _MINUTE:02} s" if whole >= _MINUTE else f"{whole} s"


def _bar(file: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(file=file, highlight=False)
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=console, transient=True)
