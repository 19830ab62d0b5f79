"""Messages that hold no record, or a strange one: each is put aside or scored, and none holds up the good ones."""

from __future__ import annotations

from fleet_poison import no_records, raw_frames, send_raw, strange_records


def test_what_is_no_record_is_put_aside_and_holds_nothing_up(fleet):
    poison = no_records()
    worker = fleet.worker("--concurrency", 4)
    records = []
    for payload, headers in poison.values():
        fleet.put(payload, headers)
        records += fleet.publish()
    fleet.until_empty()

    ends = fleet.ends(records)
    assert set(ends.scored) == set(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.is_running
    letters = fleet.letters()
    assert [letter.payload for letter in letters] == [payload for payload, _ in poison.values()]
    assert all("garbage" not in letter.headers["Ragspan-Detail"] for letter in letters)


def test_headers_that_are_none_hold_nothing_up(fleet):
    poison = raw_frames()
    worker = fleet.worker("--concurrency", 4)
    records = fleet.publish(5)
    send_raw(fleet.broker, poison.values())
    records += fleet.publish(5)
    fleet.until_empty()

    ends = fleet.ends(records)
    assert set(ends.scored) == set(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.figures()["given_back"] == {}


def test_a_strange_record_is_scored_like_any_other(fleet):
    worker = fleet.worker("--export-patience", 2, "--max-deliveries", 1)
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
