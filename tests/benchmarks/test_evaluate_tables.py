"""Memory does not grow with the table."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MAX_GROWTH = 10.0  # MB, of which the scores themselves take one


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_a_table_six_times_as_large_needs_no_more_memory(run_benchmark, file_format):
    arguments = ("--megabytes", 4, 24, "--metrics", "context_utilization", "--format", file_format)
    done = run_benchmark("evaluate_tables.py", *arguments)
    small, large = (line.replace(",", "").split() for line in done.stdout.splitlines()[1:])

    assert int(large[1]) > 5 * int(small[1]) > 1000
    assert float(large[4]) - float(small[4]) < MAX_GROWTH
