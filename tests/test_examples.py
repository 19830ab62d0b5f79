"""The examples run as they stand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:ragspan", EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quickstart.py", "numbers not in the passages: 45"),
        ("langchain_rag.py", '"ragspan.score.faithfulness": 1.0'),
        ("llama_index_rag.py", '"ragspan.score.faithfulness": 1.0'),
        ("custom_metric.py", "Score(value=1.0"),
    ],
)
def test_an_example_shows_its_scores(name, expected):
    assert expected in run(name)


def test_recorded_answers_are_replayed_through_a_chain_and_scored(tmp_path):
    rows = [
        {"question": "When?", "contexts": ["Beta settles at night."], "response": "Beta settles at night."},
        {"question": None, "contexts": ["Alpha stores profiles."], "response": "Everything costs 99 dollars in Rome."},
        {"question": "Who?", "contexts": [], "response": "I cannot say."},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    shown = run("replay.py", file)

    assert "3 answers replayed" in shown
    assert "faithfulness              2 scored   mean 0.500" in shown
    assert "1 without a score   faithfulness: no_contexts" in shown
    assert "submitted=3" in shown


def test_a_row_without_contexts_is_named(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"question": "q", "response": "r"}\n', encoding="utf-8")

    done = subprocess.run(
        [sys.executable, EXAMPLES / "replay.py", file], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 1
    assert "rows.jsonl:1: a row needs a list 'contexts'" in done.stderr
