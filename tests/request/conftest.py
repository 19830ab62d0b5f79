from __future__ import annotations

from pathlib import Path

import pytest
from whole_records import WholeRecords
from written_logs import WrittenLog

WHOLE = WholeRecords(Path(__file__).with_name("whole_records.json"))

PROMPTS = ("prompt", "framework", "model", "generations", "question")  # what the test itself says


@pytest.fixture(autouse=True)
def whole_records(request):
    """A test looks at a part of a record; of the rest nothing changes that nobody has read."""
    WrittenLog.made.clear()
    yield
    if WrittenLog.made:
        known, found = WHOLE.expected(f"{request.path.stem} {request.node.name}", WrittenLog.made, without=PROMPTS)
        assert found == known
