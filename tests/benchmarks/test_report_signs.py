"""The report's signs beside what people say."""

from __future__ import annotations

import gzip
import json

import pytest

pytestmark = pytest.mark.slow


def test_answers_that_people_find_unsupported_are_high_risk_and_the_others_are_not(run_benchmark, tmp_path):
    context = "The tower is 330 metres high. It was built in 1889."
    answers = [("The tower is 330 metres high.", True), ("Romans painted it green with brushes.", False)] * 20
    rows = [
        {"question": "How high is the tower?", "contexts": [context], "response": response, "supported": supported}
        for response, supported in answers
    ]
    with gzip.open(tmp_path / "made_up.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    done = run_benchmark("report_signs.py", tmp_path / "made_up.jsonl.gz")
    _, supported, unsupported = done.stdout.split("made_up, ")[1:]

    assert supported.startswith("supported: 20 answers, 100% supported by people")
    assert "high" not in supported
    assert "(high)" in next(line for line in unsupported.splitlines() if line.strip().startswith("faithfulness"))
