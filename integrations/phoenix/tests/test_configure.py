"""One line brings answers and their scores to Phoenix."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

APPLICATION = Path(__file__).parents[3] / "tests" / "applications" / "configured.py"


@pytest.mark.slow
def test_its_address_alone_brings_spans_and_annotations_there(phoenix):
    done = subprocess.run(
        [sys.executable, APPLICATION, json.dumps([{"phoenix": phoenix.url, "capture_content": True}])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"NO_PROXY": "*"},
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "rag payments" in phoenix.span_names
    assert {row["name"] for row in phoenix.rows} >= {"faithfulness", "completeness", "context_adherence"}
    assert any("words" in (row["result"]["explanation"] or "") for row in phoenix.rows), "quotes, as content is on"
