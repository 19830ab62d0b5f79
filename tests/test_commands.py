"""Workers that other packages bring, and what the programs of workers have in common."""

from __future__ import annotations

import logging

import pytest
import typer
from typer.testing import CliRunner

from ragspan import ConfigurationError
from ragspan.cli import app
from ragspan.command_line import listener_at, shown_address


def run(*arguments):
    return CliRunner().invoke(app, arguments)


@pytest.fixture(autouse=True)
def logging_as_before():
    level = logging.getLogger("ragspan").level
    yield
    logging.getLogger("ragspan").setLevel(level)


WORKERS = {"nats": f"{__name__}:nats", "otlp": f"{__name__}:otlp"}
nats, otlp = typer.Typer(), typer.Typer()


@nats.command()
def take_records(broker: str = "none"):
    """Take records."""
    typer.echo(f"records of {broker}")


@otlp.command()
def take_traces(otlp: str = "", otlp_grpc: str = ""):
    """Take traces."""
    typer.echo(f"traces at {otlp or otlp_grpc}")
    raise typer.Exit(3)


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        ((), "records of none", 0),
        (("--broker", "nats://b"), "records of nats://b", 0),
        (("--otlp", ":4318"), "traces at :4318", 3),
        (("--otlp=:4318",), "traces at :4318", 3),
        (("--otlp-grpc", ":4317"), "traces at :4317", 3),
    ],
)
def test_a_worker_takes_records_or_traces(register, arguments, said, code):
    register("ragspan_worker", **WORKERS)
    done = run("worker", *arguments)

    assert (done.output.strip(), done.exit_code) == (said, code)


@pytest.mark.parametrize(
    ("arguments", "missing"), [((), "nats"), (("--otlp", ":1"), "receiver"), (("--help",), "nats")]
)
def test_a_worker_whose_package_is_not_installed_says_what_brings_it(register, arguments, missing):
    register("ragspan_worker")
    done = run("worker", *arguments)

    assert f'"ragspan[{missing}]"' in done.output
    assert done.exit_code == 2


def test_the_help_of_a_worker_shows_all_that_are_installed(register):
    register("ragspan_worker", **WORKERS)
    done = run("worker", "--help")

    assert "--broker" in done.output
    assert "--otlp-grpc" in done.output
    assert done.exit_code == 0


def test_a_worker_listens_at_an_address():
    with listener_at("localhost:0") as listener:
        host, port = listener.getsockname()[:2]
        assert shown_address(host, port) == f"127.0.0.1:{port}"
        with pytest.raises(ConfigurationError, match=f"cannot listen at 127.0.0.1:{port}"):
            listener_at(f"127.0.0.1:{port}")
