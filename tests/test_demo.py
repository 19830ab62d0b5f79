"""`ragspan demo`."""

import os
import re
from pathlib import Path

import pytest
from programs import run_python
from whole_records import WholeRecords, steady

from ragspan.demo import run_demo
from ragspan.process import in_use

pytestmark = pytest.mark.slow

WHOLE = WholeRecords(Path(__file__).with_name("whole_demo.json"))
METRICS = ("context_adherence", "faithfulness")


def demo(*arguments, **environment):
    command = ("-W", "ignore", "-m", "ragspan.cli", "demo")
    return run_python(*command, *arguments, environment={**os.environ, **environment})


def labels(piece):
    return dict(re.findall(r"^  (\w+) +[\d.]+ (pass|fail)", piece, re.MULTILINE))


@pytest.mark.filterwarnings("ignore")
def test_the_whole_page_is_as_it_was_read(no_engine_yet, capsys):
    """After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/test_demo.py`, and read the difference."""
    run_demo()
    in_use.configured.shutdown(5)
    known, found = WHOLE.told("demo", [steady(line.rstrip()) for line in capsys.readouterr().out.splitlines()])

    assert found == known


def test_one_framework_can_be_asked_alone_and_its_spans_are_sent(otlp_listener):
    done = demo("--framework", "llama-index", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert done.returncode == 0, done.stderr
    assert "LangChain" not in done.stdout
    assert labels(done.stdout) == dict.fromkeys(METRICS, "pass")
    [scored] = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    [request] = [span for span in otlp_listener.spans if not span.parent_id]
    assert scored.parent_id == request.span_id
