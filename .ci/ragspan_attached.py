"""A pytest plugin: every LangChain call of a test suite is captured, as in an application with the instrumentor.

    python -m pytest -p ragspan_attached --ragspan-seen=FOLDER ...

Each process of the run leaves a file in the folder: how many requests it captured, and the errors of callbacks and records.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from pathlib import Path

import langgraph.graph  # noqa: F401  an application with graphs: the handler hears of their events, too
import pytest

from ragspan.records import Capture
from ragspan_langchain import RagspanLangChainInstrumentor

_FOLDED = 500  # captures of each process that are made records of


class SeenRequests:
    """A sink that keeps the latest captures, and counts what it gets."""

    def __init__(self) -> None:
        self.latest: deque[Capture] = deque(maxlen=_FOLDED)
        self.counts: Counter[str] = Counter()

    def submit(self, capture: Capture) -> None:
        self.counts["captures"] += 1
        self.latest.append(capture)

    def count_error(self, stage: str) -> None:
        self.counts[f"error in a {stage}"] += 1

    def fold(self) -> None:
        """Make the records, as the worker does."""
        for capture in self.latest:
            self.counts[_folded(capture)] += 1


def _folded(capture: Capture) -> str:
    try:
        return "not answered" if capture.to_record() is None else "records"
    except Exception as problem:  # noqa: BLE001  to be reported, whatever it is
        return f"error in a record: {problem!r}"


_seen = SeenRequests()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ragspan-seen", type=Path, required=True)


def pytest_configure() -> None:
    RagspanLangChainInstrumentor().instrument(sink=_seen)


def pytest_unconfigure(config: pytest.Config) -> None:
    _seen.fold()
    folder: Path = config.getoption("--ragspan-seen")
    (folder / f"{os.getpid()}.json").write_text(json.dumps(_seen.counts))
