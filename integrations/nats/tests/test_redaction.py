"""A record is redacted before it leaves the process, and what cannot be redacted does not leave it."""

from __future__ import annotations

from submitted import a_record, stored_records, submit
from waiting import until
from worker_process import is_empty

from ragspan_nats.message import MESSAGE_ID

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


def test_among_the_dead_letters_there_is_no_secret(broker, backend, make_sink, run_worker, monkeypatch):
    submit(make_sink(broker, redact=mask), a_leaky_record())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("RAGSPAN_REDACT", "builtins:len")

    code, said = run_worker("--broker", broker.url, use=lambda log: until(lambda: is_empty(broker)))

    (letter,) = broker.messages("ragspan-dead-letters")
    about = {name: text for name, text in letter.headers.items() if name != MESSAGE_ID}
    assert (code, about) == (
        0,
        {
            "Ragspan-Record": "r-1",
            "Ragspan-Reason": "redaction_failed",
            "Ragspan-Detail": "it returned an int, not a str",
            "Ragspan-Deliveries": "1",
        },
    )
    assert SECRET not in messages_in(broker, "ragspan-dead-letters")
    assert backend.spans == []
    assert SECRET not in said
