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
