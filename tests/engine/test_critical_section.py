from __future__ import annotations

import threading

import pytest

from ragspan.engine._threads import ReentrantCriticalSection, step


class Section(ReentrantCriticalSection):
    """Runs whatever it is given as a step."""

    @step
    def run(self, call, *args):
        return call(*args)


@pytest.fixture
def section() -> Section:
    return Section()


def test_steps_asked_for_within_a_step_run_after_it(section):
    order: list[str] = []

    def deepest() -> None:
        order.append("deepest")

    def inner() -> None:
        assert section.run(deepest) is None
        order.append("inner ends")

    def outer() -> str:
        assert section.run(inner) is None
        order.append("outer ends")
        return "result"

    assert section.run(outer) == "result"
    assert order == ["outer ends", "inner ends", "deepest"]


def test_a_step_that_raises_leaves_the_section_open_and_loses_nothing_put_off(section):
    order: list[str] = []

    def failing() -> None:
        section.run(order.append, "put off")
        raise LookupError

    try:
        section.run(failing)
    except LookupError:
        section.run(order.append, "next")

    assert sorted(order) == ["next", "put off"]


def test_steps_of_different_threads_never_overlap(section):
    inside = 0
    overlaps = 0

    def step() -> None:
        nonlocal inside, overlaps
        inside += 1
        overlaps += inside > 1
        [object() for _ in range(20)]
        inside -= 1

    threads = [threading.Thread(target=lambda: [section.run(step) for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (overlaps, inside) == (0, 0)


def test_what_a_step_put_off_returns_is_let_go_of_outside_the_lock(section):
    let_go_of: list[bool] = []

    class Finalised:
        def __del__(self) -> None:
            others = threading.Thread(target=lambda: let_go_of.append(section.run(bool, 1) is True))
            others.start()
            others.join(10)

    def outer() -> None:
        section.run(Finalised)

    section.run(outer)

    assert let_go_of == [True]
