"""The documentation's pages, and the code blocks on them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("integrations/*/README.md")]
)
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\S*) *(?P<options>.*)$")
NOT_RUN = re.compile(r"^ *<!-- not run: (?P<reason>.+) -->$")
TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    file: str | None = None
    """The file that the page says it is: `title="app.py"`."""
    not_run: str | None = None
    """Why it cannot run, as the comment above it says."""

    def __str__(self):
        return f"{self.page}:{self.line}"


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks_of(path):
    """The fenced blocks of a page, in order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found, number = [], 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        closing = next(later for later in range(number + 1, len(lines)) if lines[later].strip() == opening["fence"])
        above = NOT_RUN.match(lines[number - 1]) if number else None
        title = TITLE.search(opening["options"])
        found.append(
            Block(
                page=name_of(path),
                line=number + 2,
                language=opening["language"],
                text=textwrap.dedent("\n".join(lines[number + 1 : closing])) + "\n",
                file=title["name"] if title else None,
                not_run=above["reason"] if above else None,
            )
        )
        number = closing + 1
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
SHELL = [block for block in BLOCKS if block.language == "sh"]
