from __future__ import annotations

import os
import stat
import time

import pytest

from ragspan import Score
from ragspan.datasets.report import write_report


def test_the_report_is_one_file(scored, tmp_path):
    write_report(scored("faithfulness", [0.2, 0.9]), tmp_path / "report.html", title="Answers of May")

    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert "<title>Answers of May</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_older_report_is_replaced(scored, tmp_path):
    file = tmp_path / "report.html"
    file.write_text("older", encoding="utf-8")

    write_report(scored("faithfulness", [0.2]), str(file))

    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_folder_that_is_not_there_is_an_error_that_names_it(scored, tmp_path):
    with pytest.raises(OSError, match="missing"):
        write_report(scored("faithfulness", [0.2]), tmp_path / "missing" / "report.html")


def test_a_report_that_cannot_be_made_leaves_the_older_one(scored, tmp_path):
    class Broken:
        def results(self):
            raise RuntimeError("the file is gone")

    file = tmp_path / "report.html"
    file.write_text("older", encoding="utf-8")

    with pytest.raises(RuntimeError):
        write_report(scored("faithfulness", [0.2]), file, baseline=Broken())

    assert file.read_text(encoding="utf-8") == "older"
    assert len(list(tmp_path.iterdir())) == 1


def test_thousands_of_answers_with_long_texts_stay_below_two_megabytes(answered, evaluation_of, tmp_path):
    passage = "The tower is three hundred metres tall, and it stands in Paris. " * 60
    metrics = ("context_adherence", "completeness", "context_utilization", "faithfulness")
    rows = [
        answered(
            row,
            {
                name: Score(
                    value=(row * step) % 997 / 997, threshold=0.5, explanation="Not supported: " + passage[:300]
                )
                for step, name in enumerate(metrics, start=3)
            },
            question=f"How tall is tower number {row}?",
            contexts=[passage] * 5,
            response=passage,
        )
        for row in range(1, 3_401)
    ]
    evaluation = evaluation_of(rows)
    file = tmp_path / "report.html"
    write_report(evaluation_of(rows[:1]), file)  # what loads once is loaded

    started = time.process_time()
    write_report(evaluation, file, baseline=evaluation)

    assert time.process_time() - started < 10  # about one second; the machine may have much else to do
    assert 100_000 < file.stat().st_size < 2_000_000


def test_only_the_owner_may_read_a_report(scored, tmp_path):
    file = tmp_path / "report.html"
    before = os.umask(0)
    try:
        write_report(scored("faithfulness", [0.2]), file)
    finally:
        os.umask(before)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
