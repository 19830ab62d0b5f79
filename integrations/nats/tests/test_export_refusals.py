"""The export line with records that the backend refuses for good."""

from __future__ import annotations

import threading
import time

from brokers import until
from export_parts import carrying
from worker_parts import Backend


def test_a_record_that_is_refused_for_good_holds_no_other_up(make_line):
    backend = Backend(lambda names: "poison" not in names)
    line = make_line(backend)

    line.put(*(carrying(str(number)) for number in range(20)), carrying("poison"))
    line.put(*(carrying(str(number)) for number in range(20, 40)))

    until(lambda: len(line.exported) == 40)
    assert "poison" not in line.exported + line.failed
    assert len([names for names in backend.tries if names != ["poison"]]) < 25  # and not one for each

    for number in range(40, 45):  # and later ones wait for none of its pauses
        tries = len(backend.tries)
        line.put(carrying(str(number)))
        until(lambda number=number: str(number) in line.exported)
        assert [str(number)] in backend.tries[tries:]


def test_records_that_are_refused_one_after_the_other_hold_no_other_up(make_line):
    backend = Backend(lambda names: not any(name.startswith("poison") for name in names))
    line = make_line(backend)

    line.put(*(carrying(f"poison {number}") for number in range(5)), *(carrying(str(number)) for number in range(20)))

    until(lambda: len(line.exported) == 20)
    assert line.failed == []


def test_a_large_record_that_is_refused_for_good_holds_no_other_up(make_line):
    """It fills a batch by itself."""
    backend = Backend(lambda names: "poison" not in names)
    line = make_line(backend)

    line.put(carrying(*["poison"] * 600), *(carrying(str(number)) for number in range(20)))

    until(lambda: len(line.exported) == 20)


def test_a_refused_record_is_tried_again_by_itself_less_and_less_often(make_line):
    backend = Backend(lambda names: "poison" not in names)
    line = make_line(backend)
    line.put(carrying("a"), carrying("poison"))
    until(lambda: line.exported == ["a"])

    began, tries = time.monotonic(), backend.tries.count(["poison"])
    until(lambda: backend.tries.count(["poison"]) >= tries + 8)

    assert time.monotonic() - began > 0.3 * 3  # the pauses have reached their limit


def test_a_refused_record_that_is_taken_after_all_has_been_exported(make_line):
    is_mended = threading.Event()
    backend = Backend(lambda names: "poison" not in names or is_mended.is_set())
    line = make_line(backend)
    line.put(carrying("a"), carrying("poison"))
    until(lambda: line.exported == ["a"])

    is_mended.set()

    until(lambda: line.exported == ["a", "poison"])
    assert backend.taken.count("poison") == 1
