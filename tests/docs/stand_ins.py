"""Stands in for commands that a test cannot run as they are: python stand_ins.py COMMAND ARGUMENTS.

Each checks what can be known without a network: that what is named exists, or that a server starts and ends. Anything else
ends with status 1.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?([<>=!~].*)?")
READY = ("Uvicorn running on", "ragspan worker: records of stream", "ragspan worker: OTLP at", "Server is ready")
"""What servers say when they have started."""


def pip(arguments):
    """`pip install NAMES`: each distribution is ours or among the tested ones, and has the extras that are named."""
    command, *names = arguments
    assert command == "install", command
    for name in names:
        if not name.startswith("-"):
            check_requirement(name)


def check_requirement(text):
    wanted = REQUIREMENT.fullmatch(text)
    assert wanted, f"{text} is not a requirement"
    name = wanted["name"].lower()
    members = {
        member["name"]: member
        for member in map(project, [ROOT, *(file.parent for file in ROOT.glob("integrations/*/pyproject.toml"))])
    }
    if name in members:
        has = members[name].get("optional-dependencies", {})
        missing = [extra for extra in (wanted["extras"] or "").split(",") if extra and extra not in has]
        assert not missing, f"{name} has no extra {missing}"
        return
    tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not any(line.split("==")[0] == name for line in tested):
        try:
            distribution(name)
        except PackageNotFoundError:
            raise AssertionError(f"{name} is neither installed here nor in constraints.txt") from None


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def make(arguments):
    """The target exists, and everything it needs."""
    subprocess.run([shutil.which("make", path="/usr/bin:/bin"), "-n", "-C", ROOT, *arguments], check=True)


def hf(arguments):
    """The files and revisions are those that the classifier loads."""
    from ragspan_hhem import model

    command, repository, file, option, revision = arguments
    assert (command, option) == ("download", "--revision")
    pinned = Path(model.__file__).read_text(encoding="utf-8")
    assert all(f'"{word}"' in pinned for word in (repository, file, revision)), arguments


def nats_server(arguments):
    """The real one, on a port and in a folder of this machine's choice; nothing where it is not installed."""
    program = shutil.which("nats-server", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is not None:
        starts_and_ends([program, *arguments, "-a", "127.0.0.1", "-p", "-1", "-sd", "store"], statuses={0, 1})


def starts_and_ends(command, *, statuses=frozenset({0, -signal.SIGTERM, 128 + signal.SIGTERM})):
    """The real program; it is told to end as soon as it says that it has started, and ends in good order."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        started = False
        for line in server.stdout:
            print(line, end="", flush=True)
            if not started and any(word in line for word in READY):
                started = True
                server.send_signal(signal.SIGTERM)
    assert started, f"it ended with {server.returncode} before it said that it has started"
    assert server.returncode in statuses, server.returncode


def ragspan(arguments):
    program = Path(sys.executable).with_name("ragspan")
    if "uvicorn" in arguments or "worker" in arguments:
        starts_and_ends([program, *arguments])
    else:
        sys.exit(subprocess.run([program, *arguments], check=False).returncode)


def uvicorn(arguments):
    starts_and_ends([Path(sys.executable).with_name("uvicorn"), *arguments])


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](sys.argv[2:])
