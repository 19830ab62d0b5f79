"""`ragspan demo`."""

import os
import re
from pathlib import Path

import pytest
from programs import run_python
from whole_records import WholeRecords, steady

import ragspan
from ragspan.demo import HANDBOOK, SCRIPT, Way, find, run_demo
from ragspan.process import in_use

WHOLE = WholeRecords(Path(__file__).with_name("whole_demo.json"))
METRICS = ("context_adherence", "faithfulness")


def demo(*arguments, **environment):
    command = ("-W", "ignore", "-m", "ragspan.cli", "demo")
    return run_python(*command, *arguments, environment={**os.environ, **environment})


def labels(piece):
    return dict(re.findall(r"^  (\w+) +[\d.]+ (pass|fail)", piece, re.MULTILINE))


class FromHandbook:
    """Stands for a framework: it shows the pages that it finds, and has no agent."""

    def answer(self, asked):
        if asked.way is Way.AGENT:
            return None
        with ragspan.capture(question=asked.question, name=asked.title) as answer:
            answer.contexts = [page.text for page, _ in find(asked.question)]
            answer.response = asked.response
        return asked.response


@pytest.mark.parametrize("frameworks", [pytest.param("installed", marks=pytest.mark.slow), "handbook"])
@pytest.mark.filterwarnings("ignore")
def test_the_whole_page_is_as_it_was_read(no_engine_yet, capsys, frameworks, register, monkeypatch):
    """After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/test_demo.py`, and read the difference."""
    if frameworks != "installed":
        monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
        register("ragspan_demo", **dict.fromkeys(("langchain", "llama-index"), f"{__name__}:FromHandbook"))
    run_demo()
    in_use.configured.shutdown(5)
    known, found = WHOLE.told(
        f"demo, {frameworks}", [steady(line.rstrip()) for line in capsys.readouterr().out.splitlines()]
    )

    assert found == known


def test_all_pages_of_the_handbook_are_ranked_for_each_question():
    ranked = [[f"{page.name} {share:.2f}" for page, share in find(one.question, 6)] for one in SCRIPT]
    known, found = WHOLE.told("pages", [*map(list, HANDBOOK), *ranked])

    assert found == known


@pytest.mark.slow
def test_one_framework_can_be_asked_alone_and_its_spans_are_sent(otlp_listener):
    done = demo("--framework", "llama-index", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert "LangChain" not in done.stdout
    assert labels(done.stdout) == dict.fromkeys(METRICS, "pass")
    [scored] = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    [request] = [span for span in otlp_listener.spans if not span.parent_id]
    assert scored.parent_id == request.span_id
