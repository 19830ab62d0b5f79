"""Parts of other installed packages. Each is an entry point with a group and a name."""

from __future__ import annotations

from importlib.metadata import entry_points, requires
from typing import Any

from ragspan.exceptions import ConfigurationError


def part_names(group: str) -> list[str]:
    """The names of all parts of a group, sorted."""
    return sorted({entry.name for entry in entry_points(group=group)})


def load_part(group: str, name: str, missing: str) -> Any:
    """The part of this name.

    Args:
        group: of entry points, such as `ragspan_emitter`.
        name: of the part.
        missing: the message for a part that is not installed.

    Raises:
        ConfigurationError: it is not installed, or its package cannot be imported.
    """
    entry = next(iter(entry_points(group=group, name=name)), None)
    if entry is None:
        raise ConfigurationError(missing)
    try:
        return entry.load()
    except ImportError as error:
        raise ConfigurationError(f"{missing} ({entry.value} cannot be imported: {error})") from error


def requirements_of_extra(distribution: str, extra: str) -> list[str]:
    """The requirements that an extra of an installed distribution adds."""
    mark = f'; extra == "{extra}"'
    wanted = [line for line in requires(distribution) or [] if line.replace("'", '"').endswith(mark)]
    return [line.rsplit(";", 1)[0].strip() for line in wanted]
