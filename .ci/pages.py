"""Writes the parts of the documentation that come from the code: `make pages`. A test compares them.

What stands between `<!-- generated: NAME -->` and `<!-- end -->` in a page is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from ragspan.cli import app
from ragspan.config import VARIABLES
from ragspan.judges.presets import PRESETS
from ragspan_nats.command import app as nats_worker
from ragspan_receiver.command import app as receiver

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_SECTIONS = {
    "enabled": "Judge and metrics",
    "sample_rate": "How much is scored",
    "concurrency": "Processes and time",
    "emitters": "Where scores go",
}
"""By the field that is its first: the title of a section of the table of settings."""


def settings() -> Iterator[str]:
    for name, row in VARIABLES.items():
        if row.name in _SECTIONS:
            yield f"\n## {_SECTIONS[row.name]}\n\n| variable | default | meaning |\n| --- | --- | --- |\n"
        yield f"| `{name}` | {row.metadata['shown'] or _shown(row.default)} | {row.metadata['sentence']} |\n"
    yield "\n"


def commands() -> Iterator[str]:
    """The commands; the options of the worker are those of the integrations."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        yield from _command(f"ragspan {name}", command)
        if name == "worker":
            for title, program in (("Records from NATS", nats_worker), ("Traces", receiver)):
                yield f"\n{title}:\n"
                yield from _options(get_command(program))


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    for part, one in inner.items():
        yield from _command(f"{name} {part}", one)
    if inner:
        return
    arguments = [f"<{one.name}>" for one in command.params if one.param_type_name == "argument"]
    yield f"\n## {name}\n\n`{' '.join([name, *arguments])}`: {_sentence(command.help)}\n"
    yield from _options(command)


def _options(command: Any) -> Iterator[str]:
    options = [
        one for one in command.params if one.param_type_name == "option" and not one.hidden and one.name != "help"
    ]
    if options:
        yield "\n| option | meaning |\n| --- | --- |\n"
    for option in options:
        value = (
            ""
            if getattr(option, "is_flag", False)
            else f" {(option.metavar or option.name.upper()).replace('|', ' or ')}"
        )
        yield f"| `{', '.join(option.opts)}{value}` | {_sentence(option.help)} |\n"
    yield "\n"


def _sentence(text: str | None) -> str:
    """A help text in Markdown's table."""
    return " ".join((text or "").split()).replace("|", " or ").replace("<", "&lt;")


def providers() -> Iterator[str]:
    yield "\n| name | provider | key | address |\n| --- | --- | --- | --- |\n"
    for one in PRESETS.values():
        keys = " or ".join(f"`{key}`" for key in one.keys) or "none"
        keys += "" if one.needs_key or not one.keys else ", if the server wants one"
        yield f"| `{one.name}:{one.example}` | {one.title} | {keys} | `{one.shown_address}` |\n"
    yield "\n"


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    return f"`{str(default).lower() if isinstance(default, bool) else f'{default:g}' if isinstance(default, float) else default}`"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "settings": settings,
    "commands": commands,
    "providers": providers,
}


def pages() -> Iterator[tuple[Path, str, str]]:
    """Each page with generated parts: its file, its text, and the text that it should have."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = _PART.sub(lambda part: f"{part[1]}{''.join(PARTS[part[2]]())}{part[4]}", text)
        if _PART.search(text):
            yield page, text, made


if __name__ == "__main__":
    for page, _, made in pages():
        page.write_text(made, encoding="utf-8")
