"""Draws the beginning of what `ragspan demo` prints: `python e2e/draw_demo.py docs/demo.svg`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ANSWERS = 4  # one of each kind
WIDTH = 100


def main() -> None:
    """Run the demo, and draw it without fonts from elsewhere."""
    ragspan = Path(sys.executable).with_name("ragspan")
    done = subprocess.run(
        [ragspan, "demo"], env=os.environ | {"FORCE_COLOR": "1"}, stdout=subprocess.PIPE, text=True, check=True
    )
    parts = done.stdout.split("\n\n")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for part in (*parts[:ANSWERS], parts[-1]):
        console.print(Text.from_ansi(f"{part.rstrip()}\n"), no_wrap=True, overflow="ellipsis")
    drawn = console.export_svg(title="ragspan demo", unique_id="ragspan")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    Path(sys.argv[1]).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
