"""Workers that other packages bring, and what the programs of workers have in common."""

from __future__ import annotations

import logging
import os
import sys

import pytest
import typer
from typer.testing import CliRunner

from ragspan import ConfigurationError
from ragspan.cli import app
from ragspan.command_line import host_and_port, listener_at, shown_address


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


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("localhost:80", ("localhost", 80)),
        (":0", ("", 0)),
        ("[::1]:65535", ("::1", 65535)),
        *(
            (wrong, None)
            for wrong in ("localhost", "80", "localhost:", "localhost:-1", "localhost:65536", "http://a:1")
        ),
    ],
)
def test_an_address_has_a_host_and_a_port(address, parts):
    if parts is None:
        with pytest.raises(ConfigurationError, match="should have a host and a port"):
            host_and_port(address)
    else:
        assert host_and_port(address) == parts


# ragspan run


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A program that prints what it was given, as a file in a folder and as a module beside it; and one that fails."""
    monkeypatch.chdir(tmp_path)
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, [*getattr(sys, name)])
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    monkeypatch.setenv("RAGSPAN_OF_RUN", "")
    (tmp_path / "folder").mkdir()
    words = "import sys\nprint(__name__, sys.argv[1:], sys.path[0])\n"
    (tmp_path / "folder" / "app.py").write_text(words)
    (tmp_path / "shop.py").write_text(words)
    (tmp_path / "broken.py").write_text("raise ValueError('out of stock')\n")
    (tmp_path / "stopped.py").write_text("raise KeyboardInterrupt\n")
    environment = dict(os.environ)
    yield tmp_path
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]


@pytest.mark.parametrize(
    ("arguments", "given", "folder"),
    [
        (("folder/app.py", "--port", "1"), "['--port', '1']", "folder"),
        (("-m", "shop", "--port", "1"), "['--port', '1']", ""),
        (("-m", "shop"), "[]", ""),
    ],
)
def test_a_program_runs_as_python_runs_it(programs, arguments, given, folder):
    done = run("run", *arguments)

    assert done.stdout.splitlines() == [f"__main__ {given} {(programs / folder)!s}".rstrip("/")]
    assert done.stderr.startswith("ragspan: ")
    assert done.exit_code == 0
    assert os.environ["PYTHONPATH"].endswith(f"at_start{os.pathsep}elsewhere")


def test_a_quiet_run_says_nothing_of_its_own(programs):
    assert run("run", "--quiet", "-m", "shop").stderr == ""
    assert sys.path[-1] == str(programs), "for the module of RAGSPAN_REDACT"


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [("broken.py", 1, "ValueError: out of stock"), ("stopped.py", 130, "KeyboardInterrupt")],
)
def test_a_program_that_fails_fails_as_it_does_without_ragspan(programs, capsys, program, code, said):
    done = run("run", "-q", program)

    assert done.exit_code == code
    assert said in done.stderr
    assert "cli.py" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a program, such as app.py"),
        (("nowhere.py",), "there is no file nowhere.py"),
        (("-m", "nowhere"), "there is no module nowhere"),
        (("-m", "nowhere.deeper"), "No module named 'nowhere'"),
    ],
)
def test_a_program_that_is_not_there_is_said(programs, arguments, said):
    done = run("run", *arguments)

    assert done.exit_code == 2
    assert said in done.output


def test_the_version_and_frameworks_that_are_not_there(register):
    assert run("--version").output.startswith("ragspan ")
    done = run("demo", "--framework", "nowhere")
    assert done.exit_code != 0
    assert "should be one of langchain, llama-index" in f"{done.output}{done.exception}"
    register("ragspan_demo")
    done = run("demo")
    assert "no framework is installed that could answer" in f"{done.output}{done.exception}"
