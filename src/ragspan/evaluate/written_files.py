"""Files of the user's choosing that a command writes: none is a file that the command reads, and none is ever half-written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragspan.exceptions import ConfigurationError, TableError


def require_apart(read: Mapping[str, Any], written: Mapping[str, Path | None]) -> None:
    """Raise a `ConfigurationError` for a file that is read and written, or written twice, also by another spelling."""
    files = [(f"{name}, which is read", one) for name, one in read.items() if isinstance(one, (str, os.PathLike))]
    before = {os.path.realpath(one): words for words, one in files}
    for option, path in written.items():
        if path is not None and (words := before.setdefault(os.path.realpath(path), option)) != option:
            raise ConfigurationError(
                f"{option} {str(path)!r} is the same file as {words}, and would replace it: give {option} another name"
            )


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
