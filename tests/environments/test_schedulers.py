"""Programs that do not run from top to bottom: many event loops, the cells of a notebook."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def test_a_program_with_an_event_loop_for_each_request(start, judge, scores):
    """The engine has a loop of its own, and keeps nothing of theirs."""
    judge.release()
    program = start("""
        import asyncio, ragspan

        async def give(name):
            with ragspan.capture(question="Why?", sink=engine, name=name) as captured:
                captured.contexts = ["Because."]
                captured.response = "Because."

        def serve(first):
            for number in range(first, first + 20):
                asyncio.run(give(f"answer {number}"))

        threads = [threading.Thread(target=serve, args=[20 * number]) for number in range(10)]
        for thread in threads:
            thread.start()
    """)

    assert program.wait() == 0
    assert program.output == []
    assert scores() == {f"answer {number}": 1.0 for number in range(200)}


def test_a_notebook_whose_kernel_is_shut_down(start, judge, scores, tmp_path):
    """`jupyter execute` runs its cells and shuts its kernel down, as JupyterLab does."""
    pytest.importorskip("nbclient", reason="runs in `make test-environments`")
    cells = ["from program import *", "answer('first')", "import asyncio; await asyncio.sleep(0); answer('second')"]
    (tmp_path / "notebook.ipynb").write_text(json.dumps(notebook_of(cells)), encoding="utf-8")
    program = start("", *("-c", "from nbclient.cli import main; main()", "notebook.ipynb"))
    judge.wait_until_asked(2)
    judge.release()

    assert program.wait() == 0
    assert scores() == {"first": 1.0, "second": 1.0}


def notebook_of(cells):
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "python3"}},
        "cells": [
            {
                "id": str(number),
                "cell_type": "code",
                "source": cell,
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
            for number, cell in enumerate(cells)
        ],
    }
