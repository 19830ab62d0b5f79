"""The records of programs as the public shows them hold the words of their prompts."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import li_public_indices  # noqa: F401  (these fill the table)
import li_public_prompts  # noqa: F401
import pytest
from captures import Grounded
from li_public import PROGRAMS
from whole_records import WholeRecords

WHOLE = WholeRecords(Path(__file__).with_name("public_records.json"), "llama-index-core")


@pytest.mark.filterwarnings("ignore:Call to deprecated class:DeprecationWarning")
@pytest.mark.parametrize("name", [pytest.param(name, marks=each.marks) for name, each in PROGRAMS.items()])
def test_the_record_of_a_public_program(captured, model, name):
    expected = PROGRAMS[name]
    model.says(*expected.said)
    asyncio.run(expected.run()) if inspect.iscoroutinefunction(expected.run) else expected.run()

    records = captured.records()
    known, found = WHOLE.expected(name, records)
    assert found == known
    assert list(map(Grounded.of, records)) == [expected.answer]
