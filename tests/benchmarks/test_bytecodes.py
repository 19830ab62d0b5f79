"""`benchmarks/bytecodes.py` counts what ragspan's own code executes, in every thread, and nothing else."""

from __future__ import annotations

import json
import sys
from threading import Thread

import pytest

from ragspan.safe_copy import kept_entries

ONE_ENTRY = {"page": 1}


@pytest.fixture
def counts_of(part):
    """The counts of a program, by the names of functions."""
    bytecodes, scenario = part("bytecodes"), part("interleaved").Scenario

    def counts(program):
        counting = bytecodes.count(scenario(name="", unit="", turns=1, run=lambda _: program()), [])
        calls = {bytecodes.name_of(code): calls / bytecodes.RUNS for code, calls in counting.calls.items()}
        return calls, counting.bytecodes.total() / bytecodes.RUNS

    return counts


def test_the_calls_and_bytecodes_of_our_functions_are_counted_and_those_of_others_are_not(counts_of):
    calls, bytecodes = counts_of(lambda: kept_entries(ONE_ENTRY))

    assert calls == {"kept_metadata.kept_entries": 1, "kept_metadata.small_entries": 1}
    assert counts_of(lambda: json.dumps(ONE_ENTRY, indent=2)) == ({}, 0)
    assert counts_of(lambda: [kept_entries(ONE_ENTRY), json.dumps(ONE_ENTRY, indent=2)]) == (calls, bytecodes)
    assert counts_of(lambda: [kept_entries(ONE_ENTRY), kept_entries(ONE_ENTRY)])[1] == 2 * bytecodes
    assert counts_of(lambda: kept_entries({**ONE_ENTRY, "of": 2}))[1] > bytecodes > 20


def test_threads_that_begin_in_the_program_are_counted(counts_of):
    def in_a_thread():
        thread = Thread(target=kept_entries, args=(ONE_ENTRY,))
        thread.start()
        thread.join()

    assert counts_of(in_a_thread) == counts_of(lambda: kept_entries(ONE_ENTRY))


def test_whoever_traced_before_goes_on(counts_of):
    before = sys.gettrace()
    traced = []
    sys.settrace(lambda *event: traced.append(event))
    try:
        counts_of(lambda: None)
        traced.clear()
        kept_entries(ONE_ENTRY)
    finally:
        sys.settrace(before)
    assert traced


@pytest.mark.slow
def test_the_programs_of_both_frameworks_are_counted(figures_of):
    figures = figures_of("bytecodes.py", "invoke", "query", quick=False)

    assert figures.keys() == {"invoke", "query"}
    assert all(one["bytecodes"] > 10 * one["calls"] > 500 for one in figures.values())
