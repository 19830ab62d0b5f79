"""Every code block of the documentation runs, or says in its source why it cannot."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from doc_pages import BLOCKS, PAGES, PYTHON, SHELL, name_of

HERE = Path(__file__).parent
LANGUAGES = {"python", "sh", "text", "yaml", "json"}
NOT_RUN = 6
"""How many blocks cannot run. A new one needs a reason that convinces a reviewer."""


def quick_for(page):
    """The README is read first, so it is tested always."""
    return () if page == "README.md" else pytest.mark.slow


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=quick_for(name_of(page)), id=name_of(page))
        for page in PAGES
        if any(block.page == name_of(page) for block in PYTHON)
    ],
)
def test_the_python_blocks_of_a_page_run_in_order(page, reader, request):
    prepare("".join(block.text for block in PYTHON if block.page == name_of(page)), reader, request)
    prelude = HERE / "pages" / f"{name_of(page).replace('/', '-').removesuffix('.md')}.py"

    reader.run(sys.executable, HERE / "run_page.py", page, prelude)


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=quick_for(block.page), id=str(block)) for block in SHELL if not block.not_run],
)
def test_a_shell_block_runs(block, reader, request):
    for other in PYTHON:
        if other.page == block.page and other.file:
            (reader.folder / other.file).write_text(reader.with_addresses(other.text), encoding="utf-8")

    prepare(block.text, reader, request)

    reader.run("/bin/bash", "-euo", "pipefail", "-c", reader.with_addresses(block.text))

    if re.search(r"OTLP_(TRACES_)?ENDPOINT=\S+(4318|honeycomb)", block.text) and "app.py" in block.text:
        assert any("ragspan.score.faithfulness" in span.attributes for span in reader.collector.spans)
    for name, tool in reader.tools.items():
        if re.search(rf"RAGSPAN_EMITTERS=\S*{name}", block.text):
            assert "faithfulness" in tool.scores
    asks_always = "RAGSPAN_JUDGE=openai" in block.text and "JUDGE_SHARE" not in block.text
    if asks_always and "app.py" in block.text:
        assert reader.judge.requests != []


def prepare(text, reader, request):
    """What a block needs beside the reader's folder: a broker, streams as a worker makes them, results of an earlier run."""
    if "nats://" in text:
        broker = request.getfixturevalue("broker")
        if "dead_letters" in text:
            broker.make_stream(name="ragspan", subjects=["ragspan.records"])
            broker.make_stream(name="ragspan-dead-letters", subjects=["ragspan.dead_letters"])
    if "last-month.parquet" in text:
        reader.run("ragspan", "evaluate", "answers.csv", "--output", "last-month.parquet", "--quiet")


@pytest.mark.parametrize("block", [block for block in PYTHON if block.file], ids=str)
def test_a_file_of_a_page_is_run_by_a_shell_block_there(block):
    assert any(block.file in other.text for other in SHELL if other.page == block.page)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in {"yaml", "json"}], ids=str)
def test_data_on_a_page_can_be_read(block):
    assert (yaml.safe_load if block.language == "yaml" else json.loads)(block.text)


def test_few_blocks_cannot_run():
    assert len([block for block in BLOCKS if block.not_run]) <= NOT_RUN


def test_every_block_names_its_language():
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_stand_in_blocks_that_name_their_language(page):
    """A block by indentation has no language, so nothing would run it."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)

    assert re.findall(r"\n\n {4,}\S.*", text) == []
