"""Options about stored traces that cannot be right, before any tool is asked; the tools' own tests read from them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ragspan.cli import app
from ragspan.datasets import sources


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give a FILE, or a tool after --from"),
        (["answers.csv", "--from", "phoenix"], "give a FILE, or a tool after --from"),
        (["answers.csv", "--project", "p"], "--project and --since are about a tool"),
        (["--from", "phoenix"], "--project should say which project of phoenix to read"),
        (["--from", "phoenix", "--project", "p", "--since", "yesterday"], "--since is no time: give ISO 8601"),
        (["--from", "paper", "--project", "p"], "nothing reads 'paper': traces can be read from mlflow and phoenix"),
    ],
)
def test_wrong_options_are_told(arguments, told):
    done = CliRunner().invoke(app, ["evaluate", *arguments])

    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize("command", [["evaluate", "--from", "mlflow"], ["labels", "pull", "mlflow"]])
def test_a_missing_package_is_named(monkeypatch, command, tmp_path):
    monkeypatch.setattr(sources, "entry_points", lambda **_: ())
    of_labels = ["--name", "correct", "-o", str(tmp_path / "labels.jsonl")] if command[0] == "labels" else []

    done = CliRunner().invoke(app, [*command, "--project", "p", *of_labels])

    assert done.exit_code == 2
    assert "nothing reads mlflow here: pip install ragspan-mlflow ragspan-otlp" in done.stderr
