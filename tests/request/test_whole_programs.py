"""Whole records of programs that are rows of JSON: what each was called with, its steps, and what it gave.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/request/test_whole_programs.py`, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import written_logs
from written_logs import ANSWER, QUESTION, WrittenLog

from ragspan.request.contents import Call, Document, PayloadMessage

KINDS = {"role": PayloadMessage, "metadata": Document, "arguments": Call}
"""By the name of a field that only they have."""


def read(row):
    """A program; names of texts stand in braces."""
    for name in ("ANSWER", "FILTER", "HOSE", "MOTOR", "PUMP", "QUESTION"):
        row = row.replace(f"{{{name}}}", getattr(written_logs, name))
    kind_of = lambda fields: next((KINDS[name] for name in KINDS if name in fields), dict)  # noqa: E731
    return json.loads(row, object_hook=lambda fields: kind_of(fields)(**fields))


ROWS = map(read, Path(__file__).with_name("programs.jsonl").read_text("utf-8").splitlines())


@pytest.mark.parametrize("program", [pytest.param(row, id=row["program"]) for row in ROWS])
def test_the_whole_record_of_a_program(program):
    log = WrittenLog(program.get("asked", QUESTION))
    for step, *given in program["steps"]:
        getattr(log, step)(*given)
    record = log.ends(program.get("gave", ANSWER), program.get("late"))

    assert (record is None) == program.get("is_none", False)
