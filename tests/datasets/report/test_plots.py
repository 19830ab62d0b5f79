from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from ragspan import NotApplicable, Score
from ragspan.datasets.report import write_plots


def names(files):
    return [file.name for file in files]


def test_every_metric_that_has_scores_has_a_plot(answered, evaluation_of, tmp_path):
    rows = [
        answered(row, {"faithfulness": row / 10, "completeness": 0.5, "none": NotApplicable(reason="no_claims")})
        for row in range(1, 10)
    ]

    files = write_plots(evaluation_of(rows), tmp_path / "plots")

    assert names(files) == ["faithfulness.svg", "completeness.svg"]
    assert files[0].parent == tmp_path / "plots"
    words = " ".join(ET.parse(files[0]).getroot().itertext()).split()
    assert " ".join(words).count("1 answers (11.1%)") == 9
    assert "faithfulness:" in words


def test_without_any_scores_nothing_is_drawn(evaluation_of, tmp_path):
    assert write_plots(evaluation_of([]), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("metric", "file"),
    [
        ("../../etc/passwd", "etc_passwd.svg"),
        ("<script>&'\"\\b", "script_b.svg"),
        ("$x^2$ \x00 \ud800", "x_2.svg"),
        ("数", "metric.svg"),
    ],
)
def test_a_metric_of_any_name_has_a_file_in_the_folder(metric, file, answered, evaluation_of, tmp_path):
    (written,) = write_plots(evaluation_of([answered(1, {metric: 0.5})]), tmp_path)

    assert written == tmp_path / file
    assert ET.parse(written).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_metrics_whose_names_look_the_same_on_disk_have_files_of_their_own(answered, evaluation_of, tmp_path):
    files = write_plots(evaluation_of([answered(1, {"a b": 0.5, "a_b": 0.5, "A-B": 0.5})]), tmp_path)

    assert len(set(names(files))) == len(files) == 3


def test_a_metric_without_a_threshold_is_drawn_without_one(answered, evaluation_of, tmp_path):
    (file,) = write_plots(evaluation_of([answered(1, {"own": Score(value=0.5)})]), tmp_path)

    assert "passes from" not in file.read_text(encoding="utf-8")
