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
    """Refuse to write a file that is read, or written twice, under whatever name: another spelling, a link, a hard link.

    Args:
        read: what is read, by what it is called in a message. What is not a path is not a file.
        written: the files by the name of their option.

    Raises:
        ConfigurationError: two of them are the same file.
    """
    before = {f"{name}, which is read": path for name, path in read.items() if isinstance(path, (str, os.PathLike))}
    for option, path in written.items():
        if path is None:
            continue
        for words, other in before.items():
            is_same = os.path.realpath(other) == os.path.realpath(path)
            # One of them may not exist, and standard input may come from the file by the shell's "<".
            with contextlib.suppress(OSError, ValueError, AttributeError):
                there = os.fstat(sys.stdin.fileno()) if os.fspath(other) == "-" else Path(other).stat()
                is_same = is_same or os.path.samestat(there, path.stat())
            if is_same:
                raise ConfigurationError(
                    f"{option} {str(path)!r} is the same file as {words}, and would replace it: give {option} another name"
                )
        before[f"{option} {str(path)!r}"] = path


def require_jsonl(path: Path, option: str) -> None:
    """Raise a `ConfigurationError` unless the file's name says that it is JSONL."""
    if path.suffix.lower() != ".jsonl":
        raise ConfigurationError(
            f"{option} is {str(path)!r}, but rows are written as JSONL: name it {path.stem}.jsonl; another format is made of that"
            " by pandas or jq"
        )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which replaces `path` in one step at the end. Only its owner may read it.

    What is there already and is not a file, such as /dev/stdout, is written itself.

    Raises:
        TableError: it cannot be written; then `path` is as it was.
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
