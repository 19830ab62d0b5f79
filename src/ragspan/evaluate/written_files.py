"""Files of the user's choosing that a command writes: none is a file that the command reads, and none is ever half-written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragspan.exceptions import ConfigurationError, TableError


def require_apart(read: Mapping[str, Any], written: Mapping[str, Path | None]) -> None:
    """Raise a `ConfigurationError` for a file that is read and written, or written twice, also by another spelling or a link."""
    before: dict[str, Any] = {f"{name}, which is read": one for name, one in read.items()}
    for option, path in written.items():
        for words, other in before.items() if path is not None else ():
            if path is not None and isinstance(other, (str, os.PathLike)) and _identity(other) & _identity(path):
                raise ConfigurationError(
                    f"{option} {str(path)!r} is the same file as {words}, and would replace it: give {option} another name"
                )
        before[f"{option} {str(path)!r}"] = path


def _identity(path: str | os.PathLike[str]) -> set[object]:
    """Its real path, and what the system knows it by if it is there; standard input may come from a file by the shell's "<"."""
    found: set[object] = {os.path.realpath(path)}
    with contextlib.suppress(OSError, ValueError, AttributeError):
        there = os.fstat(sys.stdin.fileno()) if os.fspath(path) == "-" else Path(path).stat()
        found.add((there.st_dev, there.st_ino))
    return found


def require_jsonl(path: Path, option: str) -> None:
    """Raise a `ConfigurationError` unless the file's name says that it is JSONL."""
    if path.suffix.lower() != ".jsonl":
        better = f"{path.stem}.jsonl"
        raise ConfigurationError(f"{option} is {str(path)!r}, but rows are written as JSONL: name it {better}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which replaces `path` in one step at the end, or not at all. Only its owner may read it.

    What is there already and is not a file, such as /dev/stdout, is written itself.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.touch(mode=0o600)  # it quotes answers and contexts
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
