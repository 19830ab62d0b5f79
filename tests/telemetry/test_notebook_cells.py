"""Scores appear in the output of the cell that asked: a real kernel, driven by nbclient."""

from __future__ import annotations

import re

import pytest

nbformat = pytest.importorskip("nbformat", reason="runs in `make test-environments`")
nbclient = pytest.importorskip("nbclient", reason="runs in `make test-environments`")
pytest.importorskip("ipykernel", reason="runs in `make test-environments`")

SET_UP = """
import threading, ragspan
from ragspan import Score, ScoringEngine, RagRecord
from ragspan.telemetry.console import ConsoleEmitter

class Waiting:
    name = "faithfulness"
    may_end = threading.Event()
    def score(self, record):
        self.may_end.wait(60)
        return Score(value=0.25, threshold=0.5, explanation="no support for it", judge="overlap")

engine = ScoringEngine(metrics=[Waiting()], emitters=[ConsoleEmitter()])
"""
ASK = 'engine.submit(RagRecord(question="What is {0}?", contexts=["c"], response="It is {0}.", name="desk"))'
END = "Waiting.may_end.set(); print(engine.flush(60))"


def outputs_of(*sources):
    """What each cell shows, as text, after all have run."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [
        re.sub(
            "\x1b[^m]*m",
            "",
            "\n".join(one.get("text") or one.get("data", {}).get("text/plain", "") for one in cell.outputs),
        )
        for cell in notebook.cells
    ]


@pytest.mark.slow
def test_scores_of_a_notebook_are_in_the_output_of_the_cell_that_asked():
    _, first, second, between, end = outputs_of(SET_UP, ASK.format("one"), ASK.format("two"), "print('other')", END)

    assert "What is one?" in first
    assert "0.25 fail  no support for it" in first
    assert "What is two?" in second
    assert "What is two?" not in first
    assert (between.strip(), end.strip()) == ("other", "True")
