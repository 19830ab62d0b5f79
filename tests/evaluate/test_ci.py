"""What a run tells a CI system."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

TABLE = (
    "id,question,contexts,answer\n"
    "a,How high?,It is 330 m high.,It is 330 m high.\n"
    "b,How | <b>old</b>?,It was built in 1889.,It was built in 1789.\n"
    "c,\ufffe\x08?,It was built in 1889.,It was built in 1790.\n"
)


@pytest.fixture
def run(command, write_bytes, tmp_path):
    table = write_bytes(TABLE.encode())

    def evaluated(*options):
        return command("evaluate", table, "--metrics", "faithfulness", *options)

    return evaluated


def test_each_gate_is_a_test_case_that_names_the_worst_answers(run, tmp_path):
    junit = tmp_path / "scores.xml"
    done = run("--fail-under", "faithfulness=0.2", "--none-below", "faithfulness=0.5", "--junit", junit)
    [suite] = ET.parse(junit).getroot()
    held, failed = suite

    assert done.exit_code == 1
    assert (suite.get("tests"), suite.get("failures"), suite.get("name")) == ("2", "1", "ragspan: table.csv")
    assert (held.get("name"), list(held)) == ("faithfulness should have a mean of at least 0.2", [])
    assert "the lowest is 0" in failed[0].get("message")
    assert "It was built in 1789." in failed[0].text


def test_the_summary_of_the_job_has_the_gates_the_figures_and_the_worst_answers(run, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("# of an earlier step\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run("--fail-under", "faithfulness=0.8", "--none-below", "faithfulness=0")
    text = summary.read_text(encoding="utf-8")

    assert text.startswith("# of an earlier step\n### ragspan: table.csv\n")
    assert "- ❌ faithfulness should have a mean of at least 0.8, but has 0.3333 over 3 scored rows" in text
    assert "- ✅ faithfulness should have no score below 0" in text
    assert "| faithfulness | 0.333 |" in text
    assert "| b | How &#124; &#60;b&#62;old&#60;/b&#62;? | It was built in 1789. |" in text
