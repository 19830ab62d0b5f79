"""The shared conformance suites, which say of each program what its records are, with any peer that makes records.

A suite's own comparison grades. A program that fails is not captured right, whoever is to blame.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ragspan.records import RagRecord

GRACE = 0.3
"""Seconds that spans may take to come after a program."""


class Recording(Protocol):
    """A peer that makes records."""

    @property
    def callbacks(self) -> Any: ...

    def records(self) -> list[RagRecord]:
        """Those of the requests since the last call."""
        ...


def problems_by_case(framework: str, peer: Recording, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each case of a framework's suite, with what is wrong with its records in words."""
    run = _langchain_cases if framework == "langchain" else _llama_index_cases
    yield from run(peer, folder)


def _records(peer: Recording) -> list[RagRecord]:
    gc.collect()  # ends streams that nobody holds any more
    time.sleep(GRACE)
    return peer.records()


def _langchain_cases(peer: Recording, folder: Path) -> Iterator[tuple[str, list[str]]]:
    from langchain_core.callbacks import BaseCallbackHandler

    sys.path.insert(0, str(folder.parent))
    suite = f"{folder.name}.langchain"
    cases = importlib.import_module(f"{suite}.cases").CASES
    run_case = importlib.import_module(f"{suite}.harness").run_case
    handler = next(iter(peer.callbacks), BaseCallbackHandler())
    for name, case in cases.items():
        peer.records()
        yield name, run_case(case, lambda: (handler, lambda: _records(peer)))


def _llama_index_cases(peer: Recording, folder: Path) -> Iterator[tuple[str, list[str]]]:
    run = _loaded(folder / "llama_index" / "run.py")
    run.load_suite(folder / "llama_index")
    cases, fixtures = (importlib.import_module(f"{run.SUITE}.{name}") for name in ("cases", "fixtures"))
    compare = importlib.import_module(f"{run.SUITE}.compare").compare
    fixtures.quiet_framework()
    for case in cases.CASES:
        peer.records()
        try:
            expected = case.run(fixtures.Kit())
        except Exception as error:  # noqa: BLE001  the program's, or the peer's
            yield case.id, [f"raised {type(error).__name__}: {error}"]
        else:
            yield case.id, compare(expected, _records(peer))


def _loaded(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("conformance_run", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
