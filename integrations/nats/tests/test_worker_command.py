"""The options of `ragspan worker`, and settings that it does not start with."""

from __future__ import annotations

import logging
import re
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner
from whole_records import WholeRecords

from ragspan.cli import app
from ragspan_nats import command

WHOLE = WholeRecords(Path(__file__).with_name("whole_help.json"), "typer")
otlp = pytest.importorskip("ragspan_receiver.command")

NOWHERE = "nats://127.0.0.1:9"


@pytest.fixture(autouse=True)
def logging_as_before():
    logger = logging.getLogger("ragspan")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("worker", [command.app, otlp.app], ids=["records", "traces"])
def test_help_names_every_option_and_what_comes_back(worker):
    shown = CliRunner().invoke(worker, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    known, found = WHOLE.told(
        worker.registered_commands[0].callback.__module__, " ".join(re.sub("[│╭╮╰╯─]", " ", shown).split())
    )

    assert found == known


def refused(*arguments, **environment):
    """What the command says that does not start."""
    environment = {"OTEL_TRACES_EXPORTER": "console", **environment}
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it started"))
    signal.alarm(20)
    try:
        done = CliRunner().invoke(app, ["worker", *arguments], env=environment)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--concurrency", "0"), "concurrency is 0, but should be a whole number, at least 1"),
        (("--health", "8080"), "the address '8080' should have a host and a port, as in 127.0.0.1:PORT"),
        (("--metrics", "beauty"), "metrics or RAGSPAN_METRICS: there is no metric 'beauty' here; there are: "),
        (("--ack-wait", "0.5"), "ack_wait is 0.5, but should be a number of seconds, 1 or more"),
        (("--export-retry-timeout", "0"), "export_retry_timeout is 0.0, but should be a number of seconds"),
        (("--health", "nowhere.invalid:8080"), "cannot listen at nowhere.invalid:8080"),
        (("--stream", "a.b"), "stream is 'a.b', but should be letters, digits, '-' and '_'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_option_that_cannot_be_used_is_named(arguments, said):
    assert refused("--broker", NOWHERE, *arguments).startswith(f"ragspan worker: {said}")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RAGSPAN_ENABLED", "false", "RAGSPAN_ENABLED is false, so that a worker would have nothing to do"),
        ("RAGSPAN_NATS_CREDENTIALS_FILE", "no-such-file", "credentials_file (RAGSPAN_NATS_CREDENTIALS_FILE)"),
        ("RAGSPAN_NATS_REPLICAS", "6", "RAGSPAN_NATS_REPLICAS is 6, but should be a whole number from 1 to 5"),
        ("RAGSPAN_METRIC_TIMEOUT", "0", "RAGSPAN_METRIC_TIMEOUT is '0', but should be a number of seconds"),
        ("RAGSPAN_REDACT", "string:no_such_function", "redact (RAGSPAN_REDACT) is 'string:no_such_function'"),
        ("OTEL_TRACES_EXPORTER", "none", "no exporter of spans is configured, so that scores would go nowhere: set "),
        ("OTEL_TRACES_EXPORTER", "pigeon", "OTEL_TRACES_EXPORTER asks for the exporter 'pigeon'"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(name, value, said):
    assert refused("--broker", NOWHERE, **{name: value}).startswith(f"ragspan worker: {said}")


@pytest.mark.parametrize(
    ("address", "environment"),
    [
        ("nats://ann:the-secret@", {}),
        ("nats://ann:the-secret@host", {"RAGSPAN_NATS_CREDENTIALS_FILE": __file__}),
        ("nats://ann:the-secret@host", {"RAGSPAN_CONCURRENCY": "0"}),
        (None, {"RAGSPAN_SINK": "the-secret"}),
    ],
)
def test_no_refusal_shows_a_secret(address, environment, caplog):
    said = refused(*(["--broker", address] if address else []), RAGSPAN_JUDGE_API_KEY="the-secret", **environment)

    assert "the-secret" not in said + caplog.text
