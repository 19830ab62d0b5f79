"""Small tables, and what evaluates them at once."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from doubtful import asked_judge, endpoint  # noqa: F401 - fixtures
from fakes import FakeJudge
from typer.testing import CliRunner
from whole_records import WholeRecords, steady

from ragspan.cli import app
from ragspan.outcomes import Score

WHOLE = WholeRecords(Path(__file__).with_name("whole_commands.json"))
ROWS = [
    {"id": "a", "question": "q1", "contexts": ["one", "two"], "answer": "r1"},
    {"id": "b", "question": "q2", "contexts": [], "answer": "r2"},
    {"id": "c", "question": "q3", "contexts": ["three"], "answer": ""},
    {"id": "d", "question": "q4", "contexts": ["four"], "answer": "r4"},
]


class LengthMetric:
    """Scores a response by its length, so that every row has a value of its own."""

    name = "length"

    async def score(self, record):
        value, half = min(1.0, len(record.response or "") / 100), np.float16(0.5)
        return Score(value=value, explanation=f"of {record.question}", threshold=0.5, details={"half": half})


@pytest.fixture
def rows():
    return [dict(row) for row in ROWS]


@pytest.fixture
def judge():
    return FakeJudge()


@pytest.fixture
def length_metric():
    return LengthMetric()


@pytest.fixture
def command(monkeypatch, request, tmp_path):
    """Runs a command of `ragspan`, which judges in a thread: a helper that starts up takes its time.

    All that it says is in a file, too: after a change that is meant, `WRITE_RECORDS=1 python -m pytest tests/evaluate`.
    """
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    monkeypatch.setenv("COLUMNS", "120")
    said = []

    def run(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        lines = f"{done.stdout}\n{done.stderr}".replace(str(tmp_path), "/tmp").splitlines()
        said.append(steady([done.exit_code, *(line.rstrip() for line in lines if line.strip())]))
        return done

    yield run
    if request.path.stem != "test_whole_runs":
        known, found = WHOLE.told(f"{request.path.stem} {request.node.name}", said)
        assert found == known


@pytest.fixture
def write_jsonl(tmp_path):
    def write(rows, name="table.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_bytes(tmp_path):
    def write(data, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def split():
    """The rows of a table that could be read, and the bad ones."""

    def parted(table):
        with contextlib.closing(table):
            rows = list(enumerate(table.rows, 1))
            assert table.share_read is None or table.share_read(len(rows)) == 1, "all of it has been read"
        bad = [(number, data) for number, data in rows if isinstance(data, str)]
        return [one for one in rows if one not in bad], bad

    return parted
