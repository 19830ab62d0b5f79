"""What is installed: parts of packages, which are entry points with a group and a name, and what an extra of ragspan needs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, entry_points, requires
from typing import Any

from ragspan.exceptions import ConfigurationError


def part_names(group: str) -> dict[str, str]:
    """The names of all parts of a group, sorted, each with the distribution that registers it."""
    found = sorted(entry_points(group=group), key=lambda entry: entry.name)
    return {entry.name: entry.dist.name if entry.dist is not None else entry.value for entry in found}


def load_part(group: str, name: str, missing: str) -> Any:
    """The part of this name; raises a `ConfigurationError` with the message `missing` if it is not, or cannot be, imported."""
    entry = next(iter(entry_points(group=group, name=name)), None)
    if entry is None:
        raise ConfigurationError(missing)
    try:
        return entry.load()
    except ImportError as error:
        raise ConfigurationError(f"{missing} ({entry.value} cannot be imported: {error})") from error


def requirements_of_extra(name: str, extra: str) -> list[str]:
    """The requirements that an extra of an installed distribution adds."""
    mark = f'; extra == "{extra}"'
    wanted = [line for line in requires(name) or [] if line.replace("'", '"').endswith(mark)]
    return [line.rsplit(";", 1)[0].strip() for line in wanted]


def check_extra(extra: str, user: str) -> None:
    """Raise a `ConfigurationError` if a package of an extra of ragspan is missing; other names need nothing."""
    for line in requirements_of_extra("ragspan", extra):
        package = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        try:
            distribution(package)
        except PackageNotFoundError:
            raise ConfigurationError(f"{user} needs {package}: pip install 'ragspan[{extra}]'") from None
