"""Commands that other packages bring.

An entry point of the group `ragspan_command` names the command, and a `typer.Typer` with it. It is loaded when the command
is called, or its help is shown.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command as command_of

_GROUP = "ragspan_command"


class Commands(TyperGroup):
    """The commands of the core, and those of installed packages after them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_registered())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry = _registered().get(cmd_name)
        if entry is None:
            return None
        loaded: typer.Typer = entry.load()
        command = command_of(loaded)
        command.name = cmd_name
        return command


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=_GROUP)}
