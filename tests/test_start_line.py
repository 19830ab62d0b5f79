"""What `configure()` logs and `ragspan run` prints at its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ragspan.application import start_line
from ragspan.config import Settings
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.console import ConsoleEmitter

PARENT_AND_CHILD = """
import subprocess, sys
import ragspan
if sys.argv[1:] != ["child"]:
    subprocess.run([sys.executable, __file__, "child"], check=True)
print("done")
"""


def line(*emitters, **settings):
    chosen = Settings(**{"metrics": ("faithfulness", "completeness"), **settings})
    return start_line(chosen, "answers of langchain", metrics_from(chosen), emitters)


def test_a_share_is_said_with_both_judges():
    said = line(ConsoleEmitter(), judge="ollama:qwen3:8b", judge_share=0.2)

    assert said.startswith("answers of langchain are scored by overlap, 0.2 of them also by ollama:qwen3:8b ")


def test_that_nothing_is_scored_is_said():
    assert line(OTelEmitter(), metrics=()) == "answers of langchain are traced and not scored: there are no metrics"


@pytest.mark.slow
@pytest.mark.parametrize(("option", "times"), [((), 1), (("-q",), 0)], ids=["said", "quiet"])
def test_it_is_said_once_for_all_processes_of_a_program(tmp_path, option, times):
    program = tmp_path / "app.py"
    program.write_text(PARENT_AND_CHILD)

    done = subprocess.run(
        [sys.executable, "-m", "ragspan.cli", "run", *option, program], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["done", "done"]
    assert done.stderr.count("ragspan: answers of ") == times
