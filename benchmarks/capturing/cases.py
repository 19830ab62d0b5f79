"""The integrations' own tests as cases: a pytest plugin that lets any library take ragspan's place in them.

A test of an integration runs a program with `captured.config`, and says what the records are with
`assert captured.answers() == [...]`, or with what else the prompts held with `captured.grounded_answers()`. Here `captured` is a `Witness`: the program runs with a peer instead, and the
comparison grades what the peer saw. A test is a case up to the first thing that it asks of ragspan alone, such as its
handler's open runs; a test that says nothing of whole records before that is none, and neither is one of a module that
imports ragspan itself.
"""

from __future__ import annotations

import ast
import contextvars
import gc
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from capturing.grading import Comparison, Expected, Seen, grade
from capturing.readers import Attached

GRACE = 0.5
"""Seconds that a peer has to bring what it saw."""


class NotComparableError(Exception):
    """A test asks something that is not what a library saw of a request."""


class NothingToWatch:
    """Where tests look for captures that come a little later; a peer's come when the comparison waits for them."""

    captures = ()

    def __getattr__(self, name: str) -> NoReturn:
        raise NotComparableError(name)


class Witness:
    """Takes the place of `captured` in a test."""

    sink = NothingToWatch()

    def __init__(self, peer: Attached) -> None:
        self._peer = peer
        self.comparisons: list[Comparison] = []

    @property
    def config(self) -> dict[str, Any]:
        return {"callbacks": list(self._peer.callbacks)}

    def thread(self, thread_id: str = "conversation") -> dict[str, Any]:
        return self.config | {"configurable": {"thread_id": thread_id}}

    def answers(self) -> Answers:
        return Answers(self, self._peer.seen())

    grounded_answers = answers

    def begin(self) -> None:
        self.comparisons = []
        gc.collect()  # what a test before this one left behind is not this one's
        self._peer.seen()
        self._peer.begin()

    def compare(self, expected: Iterable[Expected], seen: list[Seen]) -> None:
        wanted = list(expected)
        self.comparisons.append(grade(wanted, self._wait_for(len(wanted), seen)))

    def _wait_for(self, count: int, seen: list[Seen]) -> list[Seen]:
        deadline = time.monotonic() + GRACE
        while len(seen) < count and time.monotonic() < deadline:
            time.sleep(0.02)  # exporting threads get on with it
            seen += self._peer.seen()
        return seen

    def __getattr__(self, name: str) -> NoReturn:
        raise NotComparableError(name)


class Answers:
    """Compares equal to what a test expects, and keeps how far it is from that."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, witness: Witness, seen: list[Seen]) -> None:
        self._witness = witness
        self._seen = seen

    def __eq__(self, expected: object) -> bool:
        if not isinstance(expected, Iterable):
            raise NotComparableError(type(expected).__name__)
        self._witness.compare(expected, self._seen)
        return True

    def __iter__(self) -> NoReturn:
        raise NotComparableError("one by one")

    def __len__(self) -> NoReturn:
        raise NotComparableError("their number")

    def __getitem__(self, place: object) -> NoReturn:
        raise NotComparableError("some of them")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One test's program."""

    theme: str
    """The name of the module that the test stands in."""
    name: str
    comparisons: tuple[Comparison, ...]
    error: str | None = None
    """What the program raised that does not raise with ragspan."""


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Cases:
    """The plugin."""

    peer: Attached
    only: str | None = None
    """Words in the name of a case."""
    ran: list[Case] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._witness = Witness(self.peer)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
        return True if is_test and _imports_ragspan(collection_path) else None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "captured" in metafunc.fixturenames:
            metafunc.parametrize("captured", [self._witness], ids=[""])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _runs_captured(item) and (self.only or "") in item.name]
        gc.collect()
        gc.freeze()  # what is there for good need not be looked through before every case

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run each case in a context of its own, as servers run requests: what a peer leaves in it is gone."""
        contextvars.copy_context().run(runtestprotocol, item, nextitem=nextitem)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._witness.begin()
        error = None
        try:
            yield
        except NotComparableError:  # the test asks for what this peer does not record
            pass
        except Exception as raised:  # noqa: BLE001 - the test's, the program's or the peer's
            error = f"{type(raised).__name__}: {raised}"[:300]
        comparisons = tuple(self._witness.comparisons)
        if comparisons or error:
            self.ran.append(Case(theme=_theme(item), name=_name(item), comparisons=comparisons, error=error))


def _runs_captured(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "captured" in names and "new_captures" not in names


def _theme(item: pytest.Item) -> str:
    return item.path.stem.removeprefix("test_")


def _name(item: pytest.Item) -> str:
    """The test's name with its own parameters, without the place of the witness among them."""
    name, bracket, parameters = item.name.removeprefix("test_").partition("[")
    own = parameters.rstrip("]").strip("-")
    return f"{name}[{own}]" if bracket and own else name


def _imports_ragspan(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    return any(name.partition(".")[0].startswith("ragspan") for name in imported)
