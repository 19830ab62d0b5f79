"""Messages that hold no record, or a strange one: each is put aside or scored, and none holds up the good ones."""

from __future__ import annotations

import sys

import pytest
from fleet_poison import no_records, packed, raw_frames, send_raw, small_lists, strange_records

pytestmark = pytest.mark.slow


def test_what_is_no_record_is_put_aside_and_holds_nothing_up(fleet):
    poison = no_records()
    worker = fleet.worker("--concurrency", 4)
    records = []
    for payload, headers in poison.values():
        fleet.put(payload, headers)
        records += fleet.publish()
    ends = fleet.all_scored(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.is_running
    letters = fleet.letters()
    assert sorted(letter.payload for letter in letters) == sorted(payload for payload, _ in poison.values())
    assert all("garbage" not in letter.headers["Ragspan-Detail"] for letter in letters)


def test_headers_that_are_none_hold_nothing_up(fleet):
    poison = raw_frames()
    worker = fleet.worker("--concurrency", 4)
    records = fleet.publish(5)
    send_raw(fleet.broker, poison.values())
    records += fleet.publish(5)
    ends = fleet.all_scored(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.figures()["nacked"] == {}


def test_a_strange_record_is_scored_like_any_other(fleet):
    worker = fleet.worker("--export-retry-timeout", 2, "--max-deliveries", 1)
    strange = strange_records()
    records = fleet.publish(5)
    for payload in strange.values():
        fleet.put(payload)
    records += fleet.publish(5)
    fleet.until_empty()

    ends = fleet.ends(records, strangers=True)
    assert set(ends.scored) >= set(records)
    assert len(ends.scored) == len(records) + len(strange)
    assert ends.others == []
    assert len(worker.log) < 5_000, "what a message holds is in the log"


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system what the process has taken")
@pytest.mark.parametrize("number", [10_000_000, 1_000_000, 45_000], ids=["bytes", "values", "allowed"])
def test_small_messages_that_unpack_to_much_cost_a_worker_little(fleet, number):
    """Some thirty kilobytes took 25 seconds of processor time and a gigabyte of memory, and the worker was silent meanwhile."""
    bombs = 10
    worker = fleet.worker("--concurrency", 4, environment={"RAGSPAN_JUDGE": "overlap"})
    before = worker.processor_seconds()
    for _ in range(bombs):
        fleet.put(*packed(small_lists(number)))
    records = fleet.publish(5)
    answers = []
    fleet.until(
        lambda: answers.append(bool(worker.figures())) or fleet.broker.stream("ragspan").messages == 0,
        what="an empty stream",
    )

    assert all(answers), "the health page was silent"
    assert set(fleet.ends(records, strangers=True).scored) >= set(records)
    assert worker.processor_seconds() - before < 1.0 * bombs  # a tenth of it on a machine with nothing else to do
    assert worker.peak_memory() < 400 * 1024 * 1024
