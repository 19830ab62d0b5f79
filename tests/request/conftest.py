from __future__ import annotations

from pathlib import Path

import pytest
from whole_records import WholeRecords
from written_logs import WrittenLog

WHOLE = WholeRecords(Path(__file__).with_name("whole_records.json"))

PROMPTS = ("prompt", "framework", "model", "generations")  # what the test itself says


@pytest.fixture(autouse=True)
def whole_records(request):
    """Compares what records hold besides what a test looks at."""
    with WHOLE.compared(request, WrittenLog.made, without=PROMPTS):
        yield WHOLE
