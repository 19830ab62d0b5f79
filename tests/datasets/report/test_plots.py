from __future__ import annotations

import struct

import pytest

from ragspan import NotApplicable, Score
from ragspan.datasets.report import write_plots


def names(files):
    return [file.name for file in files]


def test_every_metric_has_a_histogram_and_a_box_plot_and_all_have_an_overview(answered, evaluation_of, tmp_path):
    rows = [answered(row, {"faithfulness": row / 10, "completeness": 0.5}) for row in range(1, 10)]

    files = write_plots(evaluation_of(rows), tmp_path / "plots")

    assert names(files) == [
        "overview.png",
        "faithfulness-histogram.png",
        "faithfulness-box.png",
        "completeness-histogram.png",
        "completeness-box.png",
    ]
    for file in files:
        assert file.parent == tmp_path / "plots"
        signature, width, height = struct.unpack(">8s8xII", file.read_bytes()[:24])
        assert signature == b"\x89PNG\r\n\x1a\n"
        assert width > 500
        assert height > 200


def test_a_metric_without_scores_has_no_plot(answered, evaluation_of, tmp_path):
    rows = [answered(1, {"a": 0.5, "b": NotApplicable(reason="no_claims")})]

    assert names(write_plots(evaluation_of(rows), tmp_path)) == ["overview.png", "a-histogram.png", "a-box.png"]


def test_without_any_scores_nothing_is_drawn(evaluation_of, tmp_path):
    assert write_plots(evaluation_of([]), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("metric", "file"),
    [
        ("../../etc/passwd", "etc_passwd-box.png"),
        ("Größe: a\\b", "gr_e_a_b-box.png"),
        ("$x^2$ \x00 \ud800", "x_2-box.png"),
        ("数", "metric-box.png"),
    ],
)
def test_a_metric_of_any_name_has_a_file_in_the_folder(metric, file, answered, evaluation_of, tmp_path):
    files = write_plots(evaluation_of([answered(1, {metric: 0.5})]), tmp_path)

    assert names(files)[-1] == file
    assert all(written.parent == tmp_path and written.exists() for written in files)


def test_metrics_whose_names_look_the_same_on_disk_have_files_of_their_own(answered, evaluation_of, tmp_path):
    files = write_plots(evaluation_of([answered(1, {"a b": 0.5, "a_b": 0.5, "A-B": 0.5})]), tmp_path)

    assert len(set(names(files))) == len(files) == 7


def test_a_metric_without_a_threshold_is_drawn_without_one(answered, evaluation_of, tmp_path):
    assert len(write_plots(evaluation_of([answered(1, {"own": Score(value=0.5)})]), tmp_path)) == 3
