"""Commands that other packages bring."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
import typer
from typer.testing import CliRunner

from ragspan import installed
from ragspan.cli import app

greeting = typer.Typer()


@greeting.command()
def greet(name: str):
    """Greet somebody."""
    typer.echo(f"Hello {name}")


@pytest.fixture
def registered(monkeypatch):
    """Registers commands for the duration of the test, and no others."""

    def register(**entries):
        found = [EntryPoint(name, value, "ragspan_command") for name, value in entries.items()]
        monkeypatch.setattr(installed, "entry_points", EntryPoints(found).select)

    return register


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def test_a_command_of_another_package_is_run_and_listed(registered):
    registered(greet=f"{__name__}:greeting")

    assert "Greet somebody." in run("--help").output
    assert run("greet", "Ada").output == "Hello Ada\n"


def test_a_command_of_another_package_is_loaded_when_it_is_called(registered):
    registered(greet="nowhere:greeting")

    assert run("doctor", "--help").exit_code == 0
    assert run("demo", "--help").exit_code == 0


def test_a_command_that_cannot_be_imported_leaves_the_others(registered):
    registered(greet="nowhere:greeting")

    assert "demo" in run("--help").output
    tried = run("greet")
    assert tried.exit_code == 2
    assert "there is no command 'greet' (nowhere:greeting cannot be imported: No module named" in tried.output


def test_an_unknown_command_is_an_error(registered):
    registered()

    assert run("nonsense").exit_code == 2


@pytest.fixture
def workers(monkeypatch):
    """Registers what `ragspan worker` runs, and nothing else."""

    def register(*names):
        found = [EntryPoint(name, f"{__name__}:{name}", "ragspan_worker") for name in names]
        monkeypatch.setattr(installed, "entry_points", EntryPoints(found).select)

    return register


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
def test_a_worker_takes_records_or_traces(workers, arguments, said, code):
    workers("nats", "otlp")
    done = run("worker", *arguments)

    assert (done.output.strip(), done.exit_code) == (said, code)


@pytest.mark.parametrize(("arguments", "missing"), [((), "nats"), (("--otlp", ":1"), "otlp"), (("--help",), "nats")])
def test_a_worker_whose_package_is_not_installed_says_what_brings_it(workers, arguments, missing):
    workers()
    done = run("worker", *arguments)

    assert f"pip install ragspan-{missing}" in done.output
    assert done.exit_code == 2


def test_the_help_of_a_worker_shows_all_that_are_installed(workers):
    workers("nats", "otlp")
    done = run("worker", "--help")

    assert "--broker" in done.output
    assert "--otlp-grpc" in done.output
    assert done.exit_code == 0
