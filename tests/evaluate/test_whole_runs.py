"""A run with all that there can be: its words, its figures, its results and its report, as they were read once.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/evaluate/test_whole_runs.py`, and read the difference.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from whole_records import WholeRecords, steady

WHOLE = WholeRecords(Path(__file__).with_name("whole_runs.json"))
TOWER = ["The tower is 330 metres high. It opened in 1889.", "Trams run all night."]
HARBOUR = ["The harbour was built in 1907. Ships of 300 metres may enter.", "Fees are due in March.", "It rained."]
ANSWERS = [  # model, label, question, contexts, answer
    ("small", "yes", "How high is the tower?", TOWER, "The tower is 330 metres high."),
    ("small", "no", "How high is the tower?", TOWER, "The tower is 350 metres high."),
    ("small", "no", "When did it open?", TOWER, "It opened in 1901, after a war."),
    ("small", "yes", "When was the harbour built?", HARBOUR, "The harbour was built in 1907. Fees are due in March."),
    ("large", "yes", "When was the harbour built?", HARBOUR, "In 1907 [1]."),
    ("large", "no", "When was the harbour built?", HARBOUR, "The harbour was built in 1917 by Greeks and Romans."),
    ("large", "", "Do trams run?", TOWER, "Yes, trams run all night."),
    ("large", "no", "Do trams run?", TOWER, "Trams do not run at night. The opera was founded by a king in Berlin."),
    ("", "yes", "", HARBOUR, "Ships of 300 metres may enter."),
    ("large", "", "What of the fees?", [], "Fees are due in May."),
    ("large", "", "What of the fees?", HARBOUR, "I don't know."),
    ("small", "", "What of the fees?", HARBOUR, ""),
]


@pytest.fixture
def tables(tmp_path, monkeypatch, write_jsonl):
    """A table, and the result of an earlier run of it, with other answers."""
    monkeypatch.chdir(tmp_path)
    names = ("model", "label", "question", "contexts", "answer")
    rows = [dict(zip(names, row, strict=True), id=f"row-{at}") for at, row in enumerate(ANSWERS)]
    before = [row | {"answer": row["answer"].replace("1907", "1908").replace("350", "330")} for row in rows]
    write_jsonl(before, "before.jsonl")
    write_jsonl([row | {"id": f"{row['id']}-{time}"} for time in range(4) for row in rows], "many.jsonl")
    path = write_jsonl(rows, "table.jsonl")
    path.write_text(f"{path.read_text('utf-8')}[]\n{{\n{json.dumps({'question': 'no answer'})}\n", "utf-8")


def told(text):
    return [steady(line.rstrip()) for line in text.splitlines() if line.strip()]


RUNS = {
    "plain": ["evaluate", "table.jsonl", "--json", "s.json", "--output", "r.jsonl"],
    "every metric": ["evaluate", "table.jsonl", "--by", "model", "--label-column", "label", "--json", "s.json", "--report", "r.html", "--metrics",
        "context_adherence,faithfulness,completeness,context_utilization,context_relevance,chunk_attribution,chunk_utilization"],
    "gates that hold": ["evaluate", "table.jsonl", "--fail-under", "faithfulness=0.2", "--min-passing", "faithfulness=0.3",
        "--none-below", "faithfulness=0", "--min-scored", "0.4", "--limit", "9", "--metrics", "faithfulness"],
    "gates that fail": ["evaluate", "table.jsonl", "--fail-under", "faithfulness=0.9", "--min-passing", "faithfulness=0.9",
        "--none-below", "faithfulness=0.5", "--min-scored", "0.99"],
    "two groups": ["evaluate", "table.jsonl", "--by", "model", "--by", "label", "--metrics", "faithfulness", "--json", "s.json"],
    "agreement": ["agree", "many.jsonl"],
    "labels": ["evaluate", "table.jsonl", "--limit", "6", "--label-column", "label", "--report", "r.html", "--metrics", "context_adherence"],
    "agreement of few": ["agree", "table.jsonl", "--metrics", "completeness,faithfulness"],
}  # fmt: skip


def outcome_of(done):
    """The exit code, the words, and what the files hold."""
    found = {"code": done.exit_code, "said": told(done.stdout), "told": told(done.stderr)}
    if Path("s.json").exists():
        found["figures"] = steady(json.loads(Path("s.json").read_text("utf-8")))
    if Path("r.jsonl").exists():
        found["results"] = [steady(json.loads(line)) for line in Path("r.jsonl").read_text("utf-8").splitlines()]
    if Path("r.html").exists():
        data = re.search(
            r'<script type="application/json"[^>]*>(.*?)</script>', Path("r.html").read_text("utf-8"), re.DOTALL
        )
        found["report"] = steady(json.loads(data[1]))
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_whole_run(command, tables, name):
    known, found = WHOLE.told(name, outcome_of(command(*RUNS[name])))

    assert found == known


@pytest.mark.parametrize("options", [["--report", "r.html"], ["--by", "model"]], ids=["all", "by model"])
def test_a_whole_comparison(command, tables, options):
    assert command("evaluate", "before.jsonl", "--output", "b.jsonl").exit_code == 0

    done = command(
        "evaluate", "table.jsonl", "--compare", "b.jsonl", "--report", "r.html", "--json", "s.json", *options
    )
    known, found = WHOLE.told(f"comparison {' '.join(options)}", outcome_of(done))

    assert found == known
