"""A newcomer's first lines, as the README has them: from wheels in an empty environment to scores.

Run with `-s` it prints how long each took.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAUNCHER = (ROOT / "docs" / "tracing-tools.md").read_text(encoding="utf-8")
PROGRAMS = {
    "langchain": ROOT / "tests" / "applications" / "plain.py",
    "llama-index": ROOT / "tests" / "applications" / "plain_llama_index.py",
}


def line_of(page, start):
    """The line of a code block that begins so, without its comment."""
    (line,) = {
        found.partition("  #")[0].strip() for found in re.findall(rf"^{re.escape(start)}.*$", page, re.MULTILINE)
    }
    return line


class Environment:
    """An empty environment, a folder to work in, and a clock."""

    def __init__(self, folder, wheels):
        self.folder = folder
        self._wheels = wheels
        venv.create(folder / "clean", with_pip=True)

    def shell(self, line, **variables):
        """What a line prints in a shell of this environment."""
        others = {
            name: text for name, text in os.environ.items() if not name.startswith(("RAGSPAN_", "OTEL_", "PYTHON"))
        }
        began = time.perf_counter()
        done = subprocess.run(
            ["/bin/bash", "-euc", line],
            cwd=self.folder,
            env=others
            | {
                "PATH": f"{self.folder / 'clean' / 'bin'}:/usr/bin:/bin",
                "PIP_FIND_LINKS": str(self._wheels),
                "UV_FIND_LINKS": str(self._wheels),
                "UV_CONSTRAINT": str(ROOT / "constraints.txt"),
                "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "NO_PROXY": "127.0.0.1,localhost",
            }
            | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        sys.stdout.write(f"{time.perf_counter() - began:6.1f} s  {line}\n")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "integrations" / "langchain", ROOT / "integrations" / "llama-index"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module", params=["langchain", "llama-index"])
def framework(request):
    return request.param


@pytest.fixture(scope="module")
def environment(wheels, framework, tmp_path_factory):
    """After the README's first line, and with a program of the user's own."""
    made = Environment(tmp_path_factory.mktemp(framework), wheels)
    (made.folder / "app.py").write_text(PROGRAMS[framework].read_text(encoding="utf-8"), encoding="utf-8")
    install = line_of(README, 'pip install "ragspan[langchain]"').replace("langchain", framework)
    if framework != "langchain" and importlib.util.find_spec("uv"):  # one by pip itself; LlamaIndex takes it minutes
        install = f"{sys.executable} -m uv {install} --python clean/bin/python --link-mode=copy"
    made.shell(install)
    return made


def test_one_command_and_two_lines_bring_scores_to_the_console(environment):
    lines = [line_of(README, "import ragspan"), "ragspan.configure()"]
    assert f"\n{lines[0]}\n\n{lines[1]}  #" in README
    program = environment.folder / "with_two_lines.py"
    program.write_text(
        "\n".join([*lines, (environment.folder / "app.py").read_text(encoding="utf-8")]), encoding="utf-8"
    )

    shown = environment.shell(f"python -W error {program.name}")

    assert re.search(r"^  faithfulness +1\.00 pass", shown, re.MULTILINE), shown


@pytest.mark.parametrize("command", ["ragspan run app.py", "ragspan run -m app"])
def test_one_command_does_so_without_a_line(environment, command):
    shown = environment.shell(command)

    assert re.search(r"^  faithfulness +1\.00 pass", shown, re.MULTILINE), shown


def test_the_launchers_bring_spans_to_a_collector(environment, framework, otlp_listener):
    install = line_of(LAUNCHER, 'pip install "ragspan[langchain]" opentelemetry-distro')
    export = line_of(LAUNCHER, "export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 OTEL_EXPORTER_OTLP_PROTOCOL")
    launch = line_of(LAUNCHER, "opentelemetry-instrument python app.py")
    export = export.replace("http://localhost:4318", otlp_listener.url)
    environment.shell(install.replace("langchain", framework))

    for command in (launch, "ragspan run app.py", "ragspan run -m app"):
        otlp_listener.spans.clear()
        environment.shell(f"{export}; {command}")
        answers = [span.attributes for span in otlp_listener.spans if span.name.startswith("invoke_")]
        assert [answer["ragspan.score.faithfulness"] for answer in answers] == [1.0], command
