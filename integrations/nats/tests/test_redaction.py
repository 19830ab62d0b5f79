"""A record is redacted before it leaves the process, and what cannot be redacted does not leave it."""

from __future__ import annotations

import logging

import pytest
from brokers import PATIENCE, until
from letter_parts import listed
from submitted import a_record, stored_records, submit
from worker_process import is_empty, start_worker

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
    sink = make_sink(broker, redact=mask, compress_above=10**6)

    submit(sink, a_leaky_record())
    assert SECRET not in messages_in(broker, "ragspan")
    (stored,) = stored_records(broker)
    assert (stored.question, stored.metadata) == ("Who is [e-mail]?", {"author": "[e-mail]"})
    assert sink.stats().published == 1


def test_what_cannot_be_redacted_is_dropped_and_counted(broker, make_sink, caplog):
    def fail(text):
        raise ValueError(text)

    sink = make_sink(broker, redact=fail)
    caplog.set_level(logging.WARNING, logger="ragspan")

    for number in range(3):
        sink.submit(a_leaky_record(f"r-{number}"))

    assert sink.flush(PATIENCE)
    assert (sink.stats().published, sink.stats().dropped) == (0, {"redaction_failed": 3})
    assert caplog.messages.count("a record is dropped, because redact failed: ValueError") == 1
    assert SECRET not in caplog.text
    assert broker.messages("ragspan") == []


@pytest.mark.parametrize("function", ["capwords", "no_such_function"])
def test_a_worker_refuses_a_name_that_means_nothing_and_redacts_by_one_that_does(
    broker, backend, tmp_path, make_sink, function
):
    worker = start_worker(
        broker,
        tmp_path / "worker.log",
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
        RAGSPAN_REDACT=f"string:{function}",
        RAGSPAN_CAPTURE_CONTENT="true",
        RAGSPAN_METRICS="faithfulness",
    )
    try:
        if function == "no_such_function":
            assert worker.ended() == 2
            assert "string has no no_such_function" in worker.log
            return
        sink = make_sink(broker)
        submit(sink, a_record(question="who is it"))
        worker.until(lambda: backend.spans and is_empty(broker), what="a score")
        assert [span.attributes["input.value"] for span in backend.spans if span.record] == ["Who Is It"]
    finally:
        worker.kill()


def test_among_the_dead_letters_there_is_no_secret(broker, backend, tmp_path, make_sink):
    sink = make_sink(broker, redact=mask, compress_above=10**6)
    submit(sink, a_leaky_record())
    worker = start_worker(
        broker,
        tmp_path / "worker.log",
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
        RAGSPAN_REDACT="builtins:len",
    )
    try:
        until(lambda: len(broker.messages("ragspan-dead-letters")) == 1, what="a dead letter", patience=PATIENCE)
        (letter,) = listed(broker)
        assert (letter["reason"], letter["detail"]) == ("redaction_failed", "it returned a int, not a str")
        assert SECRET not in messages_in(broker, "ragspan-dead-letters")
        assert backend.spans == []
        assert SECRET not in worker.log
    finally:
        worker.kill()
