"""`ragspan judges`: which judges there are."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from ragspan.addresses import shown_url
from ragspan.installed import part_sources
from ragspan.judges.judge_catalogue import EMBEDDED, JUDGES
from ragspan.judges.presets import PRESETS


def judges() -> None:
    """List the judges by name, with the address that they ask, and whether their key is set.

    A name and a model go into RAGSPAN_JUDGE, configure(judge=...) and --judge; ragspan doctor asks it. No key is shown.
    """
    rows = [("name", "key", "address"), *_rows()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, key, address in rows:
        typer.echo(f"{name.ljust(widths[0])}  {key.ljust(widths[1])}  {address}".rstrip())


def _rows() -> Iterator[tuple[str, str, str]]:
    yield EMBEDDED, "none needed", "none: it compares words in this process"
    for preset in PRESETS.values():
        key = "none needed"
        if preset.key_variable is not None:
            key = f"{preset.key_variable} is set"
        elif preset.keys:
            key = f"{' or '.join(preset.keys)}: not set" + ("" if preset.needs_key else ", may not be needed")
        address = shown_url(preset.base_url) if preset.base_url is not None else preset.shown_address
        yield f"{preset.name}:<model>", key, address
    for name, source in part_sources(JUDGES).items():
        yield name, "", f"from the package {source}"
