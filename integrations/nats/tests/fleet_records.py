"""Records for the tests of a fleet."""

from __future__ import annotations

from ragspan import RagRecord


def a_record(number):
    """A record with its id in each of its texts, for the judge, and for logs that should hold none of them."""
    name = f"record-{number}"
    return RagRecord(
        record_id=name,
        question=f"What is {name}?",
        contexts=[f"{name} is a record. It is scored by a worker.", f"Nobody asks for {name} twice."],
        response=f"{name} is a record.",
        name="fleet",
    )
