"""Commands that other packages bring."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from ragspan import cli
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
        monkeypatch.setattr(cli, "entry_points", lambda group: found if group == "ragspan_command" else [])

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
    assert isinstance(run("greet").exception, ModuleNotFoundError)


def test_an_unknown_command_is_an_error(registered):
    registered()

    assert run("nonsense").exit_code == 2
