"""Answers of plain Python code that wait, with metadata of megabytes, stay within the queue's bound."""

from __future__ import annotations

import pytest
from memory import LINUX, assert_bounded, growth_of

pytestmark = [pytest.mark.slow, LINUX]


@pytest.mark.parametrize(
    "captured",
    [
        """
            with ragspan.capture(question=f"q{number}?", sink=engine, metadata=metadata(number)) as answer:
                answer.contexts, answer.response = ["The fee is 5 euros."], "It is 5 euros."
        """,
        """
            with ragspan.capture(question=f"q{number}?", sink=engine) as answer:
                answer.contexts = [ragspan.RetrievedContext(text="The fee is 5 euros.", metadata=metadata(number))]
                answer.response = "It is 5 euros."
        """,
        """
            engine.submit(ragspan.RagRecord(
                question=f"q{number}?", contexts=[ragspan.RetrievedContext(text="t", metadata=metadata(number))], response="r",
            ))
        """,
    ],
    ids=["of the answer", "of its contexts", "a record by hand"],
)
def test_of_capture(captured):
    program = f"""
        import ragspan
        engine = waiting_engine()
        def ask(number):{captured}
        report(ask, engine.stats)
    """

    assert_bounded(growth_of(program))
