"""Draws one failing answer as `ragspan demo` prints it, with its whole reasons: `python e2e/draw_demo.py docs/demo.svg`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

SHOWN = "a wrong number"  # in the heading of the answer
WIDTH = 100
INDENT = 34  # where the reasons begin


def main() -> None:
    """Run the demo, and draw it without fonts from elsewhere."""
    ragspan = Path(sys.executable).with_name("ragspan")
    done = subprocess.run(
        [ragspan, "demo"], env=os.environ | {"FORCE_COLOR": "1"}, stdout=subprocess.PIPE, text=True, check=True
    )
    (part,) = (part for part in done.stdout.split("\n\n") if SHOWN in part)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in part.splitlines():
        console.print(Text("\n" + " " * INDENT).join(_wrapped(Text.from_ansi(line.rstrip()), console)))
    drawn = console.export_svg(title="ragspan demo", unique_id="ragspan")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    Path(sys.argv[1]).write_text(drawn, encoding="utf-8")


def _wrapped(line: Text, console: Console) -> list[Text]:
    """The line as wide as the picture, and its other lines below its reason."""
    if line.cell_len <= WIDTH:
        return [line]
    first, *others = line.wrap(console, WIDTH)
    rest = Text(" ").join(others)
    return [first, *rest.wrap(console, WIDTH - INDENT)]


if __name__ == "__main__":
    main()
