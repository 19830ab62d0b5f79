"""Whole records of programs, beside those in a file.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest` with the tests that use it, and read the difference.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from ragspan.records import RagRecord

_CHANCE = re.compile(r"\bcall-\d+|\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b")
_CLOCK = re.compile(
    r"\d+(?:\.\d+)? (?:s|ms|rows/s)\b|in \d+(?:\.\d+)? seconds?|\d{4}-\d\d-\d\d[ T][\d:.+Z]*|(?<=127\.0\.0\.1:)\d+"
)
_STEPS = {"retrievals", "generations", "tool_calls", "rerankings"}
"""Programs take them side by side, in threads: which one begins first is chance."""
_BY_CHANCE = {"record_id", "rank"}  # a document has the rank that the first search gives it


class WholeRecords:
    """A file with the records of programs, by the program's name, as far as no chance and no clock decides.

    Releases of the framework before the one that it was written with name steps otherwise: there, the file has nothing to say.
    """

    def __init__(self, path: Path, framework: str = "") -> None:
        self.path = path
        self._release = importlib.metadata.version(framework) if framework else "0"
        self.known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    @contextmanager
    def compared(
        self, test: pytest.FixtureRequest, seen: list[RagRecord], *, without: Container[str] = ("prompt",)
    ) -> Iterator[None]:
        """A test looks at a part of the records that it has `seen` made; of the rest nothing changes that nobody has read."""
        seen.clear()
        yield
        if seen:
            known, found = self.expected(f"{test.path.stem} {test.node.name}", seen, without=without)
            assert found == known

    def expected(self, name: str, records: Iterable[RagRecord], *, without: Container[str] = ()) -> tuple[Any, Any]:
        """What the file has of a program, and what there is."""
        found = [_told(json.loads(record.to_json()), without) for record in records]
        return self.told(name, sorted(found, key=json.dumps))

    def told(self, name: str, found: Any) -> tuple[Any, Any]:
        """The same of anything that JSON can hold."""
        print("after a change that is meant, run this file with WRITE_RECORDS=1, and read the difference")  # noqa: T201
        if os.environ.get("WRITE_RECORDS"):
            if "PYTEST_XDIST_WORKER" in os.environ:
                pytest.fail("processes would overwrite what others write: leave out -n")
            self.known |= {"release": self._release, name: found}
            lines = (
                f"{json.dumps(each)}: {json.dumps(self.known[each], ensure_ascii=False)}" for each in sorted(self.known)
            )
            self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8", "backslashreplace")
        is_older = Version(self._release) < Version(self.known["release"])
        return found if is_older else self.known.get(name), found


def _told(value: Any, without: Container[str]) -> Any:
    if isinstance(value, dict):
        parts = ((name, part) for name, part in value.items() if name not in without)
        kept = {
            name: _told(part, without) for name, part in parts if not name.endswith("_ns") and name not in _BY_CHANCE
        }
        kept |= {name: sorted(kept[name], key=json.dumps) for name in _STEPS & kept.keys()}
        return {name: part for name, part in kept.items() if part not in (None, [], {}, False, "")}
    if isinstance(value, list):
        return [_told(part, without) for part in value]
    return _CHANCE.sub("id", value) if isinstance(value, str) else value


def steady(value: Any) -> Any:
    """Without what a clock says, and with figures to the fourth place."""
    if isinstance(value, dict):
        timed = ("seconds", "started", "_ns", "record_id", "version", "created", "date", "written")
        return {name: steady(part) for name, part in value.items() if not any(one in name for one in timed)}
    if isinstance(value, list):
        return list(map(steady, value))
    return _CLOCK.sub("...", value) if isinstance(value, str) else round(value, 4) if type(value) is float else value
