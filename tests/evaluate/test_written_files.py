"""No command writes a file that it reads."""

from __future__ import annotations

import json
import os

import pytest

from ragspan.evaluate import evaluate
from ragspan.exceptions import ConfigurationError

ROW = {"question": "q", "contexts": ["Beta settles."], "response": "Beta settles."}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(ROW), encoding="utf-8")
    os.link(path, tmp_path / "hard.jsonl")
    (tmp_path / "link.jsonl").symlink_to(path)
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "./t.jsonl"])
@pytest.mark.parametrize("option", ["--output", "--json"])
def test_a_file_that_is_the_table_by_any_name_is_refused(command, table, name, option):
    done = command("evaluate", "t.jsonl", option, name.format(folder=table.parent.name))

    assert (done.exit_code, "is the same file as the table" in done.stderr) == (2, True)
    with pytest.raises(ConfigurationError, match=r"^the output .* is the same file as the table, which is read, and w"):
        evaluate(name, output=name)
    assert json.loads(table.read_text(encoding="utf-8")) == ROW


def test_a_baseline_is_not_replaced_by_the_run_that_is_compared_with_it(command, table, tmp_path):
    assert command("evaluate", "t.jsonl", "-o", "before.jsonl").exit_code == 0
    before = (tmp_path / "before.jsonl").read_bytes()

    done = command("evaluate", "t.jsonl", "-o", "./before.jsonl", "--compare", "before.jsonl", "--report", "r.html")

    assert (done.exit_code, (tmp_path / "before.jsonl").read_bytes()) == (2, before)
