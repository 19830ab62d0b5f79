"""Records that wait for a broker which is away stay within the queue's bound, whatever their metadata hold."""

from __future__ import annotations

import pytest
from memory import LINUX, assert_bounded, growth_of

pytestmark = [pytest.mark.slow, LINUX]


@pytest.mark.parametrize(
    "submitted",
    [
        """
            sink.submit(ragspan.RagRecord(
                question="q", contexts=[ragspan.RetrievedContext(text="t", metadata=metadata(number))], response="r",
            ))
        """,
        """
            with ragspan.capture(question="q", sink=sink, metadata=metadata(number)) as answer:
                answer.contexts, answer.response = ["The fee is 5 euros."], "It is 5 euros."
        """,
    ],
    ids=["records", "answers"],
)
def test_of_the_sink(submitted):
    program = f"""
        import logging
        import ragspan
        from ragspan_nats import NatsSink
        logging.disable(logging.WARNING)
        sink = NatsSink("nats://127.0.0.1:1", queue_bytes=QUEUE_BYTES, queue_size=100_000)
        def ask(number):{submitted}
        report(ask, sink.stats)
    """

    assert_bounded(growth_of(program))
