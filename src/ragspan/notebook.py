"""HTML for notebooks: short tables of escaped texts.

They use the colours of the theme, so that they can be read on light and dark pages. They need no style sheet and no script,
because notebooks remove these from outputs that they do not trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

TEXT_SHOWN = 300
"""Characters of a text."""
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:pre-wrap;unicode-bidi:isolate;"
_STYLES = {"th": _CELL + "overflow-wrap:break-word;max-width:20em", "td": _CELL + "overflow-wrap:anywhere"}
_MISSING = "\N{EN DASH}"


def table(title: str, rows: Iterable[Sequence[str | None]], *, header: Sequence[str] = ()) -> str:
    """A title, and rows that begin with their names. A long text is cut, and the number of left-out characters is shown."""
    lines = [_row(header, "th", "th")] if header else []
    lines += [_row(cells, "th", "td") for cells in rows]
    style = "border-collapse:collapse;background:transparent;color:inherit"
    return f'<div style="margin:.5em 0"><strong dir="auto">{_shown(title)}</strong><table style="{style}">{"".join(lines)}</table></div>'


def _row(cells: Sequence[str | None], first: str, other: str) -> str:
    tags = [first, *[other] * (len(cells) - 1)]
    written = (
        f'<{tag} dir="auto" style="{_STYLES[tag]}">{_MISSING if cell is None else _shown(cell)}</{tag}>'
        for tag, cell in zip(tags, cells, strict=True)
    )
    return f'<tr style="background:transparent">{"".join(written)}</tr>'


def _shown(text: str) -> str:
    shown, rest = text[:TEXT_SHOWN], len(text) - TEXT_SHOWN
    whole = escape(shown.encode("utf-8", "replace").decode())  # the kernel cannot send half of a surrogate pair
    return f'{whole}… <span style="opacity:.7">({rest:,} more characters)</span>' if rest > 0 else whole
