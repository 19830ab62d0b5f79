"""A record is redacted before it leaves the process, and what cannot be redacted does not leave it."""

from __future__ import annotations

import pytest
from submitted import a_record, stored_records, submit
from waiting import PATIENCE, until

SECRET = "anna@example.org"


def mask(text):
    return text.replace(SECRET, "[e-mail]")


def a_leaky_record(record_id="r-1"):
    return a_record(
        record_id, question=f"Who is {SECRET}?", contexts=[f"{SECRET} is Anna."] * 3, metadata={"author": SECRET}
    )


def messages_in(broker, stream):
    return repr([(message.headers, message.payload) for message in broker.messages(stream)])


def test_the_stream_holds_no_secret(broker, make_sink):
    sink = make_sink(broker, redact=mask)

    submit(sink, a_leaky_record())
    assert SECRET not in messages_in(broker, "ragspan")
    (stored,) = stored_records(broker)
    assert (stored.question, stored.metadata) == ("Who is [e-mail]?", {"author": "[e-mail]"})
    assert sink.stats().finished == 1


@pytest.mark.slow
def test_among_the_dead_letters_there_is_no_secret(broker, backend, make_sink, make_worker):
    submit(make_sink(broker, redact=mask), a_leaky_record())
    worker = make_worker(OTEL_EXPORTER_OTLP_ENDPOINT=backend.url, RAGSPAN_REDACT="builtins:len")

    until(lambda: len(broker.messages("ragspan-dead-letters")) == 1, what="a dead letter", patience=PATIENCE)
    ((reason, detail),) = [
        (letter.headers["Ragspan-Reason"], letter.headers["Ragspan-Detail"])
        for letter in broker.messages("ragspan-dead-letters")
    ]
    assert (reason, detail) == ("redaction_failed", "it returned an int, not a str")
    assert SECRET not in messages_in(broker, "ragspan-dead-letters")
    assert backend.spans == []
    assert SECRET not in worker.log
