"""The distributions as users install them."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
MEMBERS = sorted(ROOT.glob("integrations/*/pyproject.toml"))


def project(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda file: file.parent.name)
def test_members_have_the_version_of_the_core(member):
    assert project(member)["version"] == project(ROOT / "pyproject.toml")["version"]


def test_distributions_need_each_other_in_the_same_version():
    core = project(ROOT / "pyproject.toml")
    needed = [line for extra in core["optional-dependencies"].values() for line in extra]
    needed += [line for member in MEMBERS for line in project(member)["dependencies"]]
    ours = [line for line in needed if re.match(r"ragspan\b", line)]

    assert len(ours) == 2 * len(MEMBERS)
    assert [line for line in ours if not line.endswith(f"=={core['version']}")] == []


class Environment:
    """An environment of its own, at first an empty one, and a folder to work in."""

    def __init__(self, folder, wheels):
        self.folder = folder
        self._wheels = wheels
        venv.create(folder / "clean", with_pip=True)

    def shell(self, line):
        """What a line prints in a shell of this environment."""
        others = {
            name: text for name, text in os.environ.items() if not name.startswith(("RAGSPAN_", "OTEL_", "PYTHON"))
        }
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
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, line):
        """What `pip install` names; by uv if it is there, because pip takes minutes."""
        if importlib.util.find_spec("uv"):
            line = f"{sys.executable} -m uv {line} --python clean/bin/python --link-mode=copy"
        self.shell(line)

    def python(self, *arguments):
        return self.shell(shlex.join(["python", *arguments]))


def build(target, source, folder):
    """Build a distribution of the project in `source`, into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The sdists, each unpacked in a folder where nothing else is."""
    folder = tmp_path_factory.mktemp("sources")
    for project_folder in (ROOT, *(member.parent for member in MEMBERS)):
        build("sdist", project_folder, folder)
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    return sorted(path for path in folder.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def wheels(sources, tmp_path_factory):
    """Wheels that are built from the sdists: whatever works of them shows that nothing is missing there."""
    folder = tmp_path_factory.mktemp("dist")
    for source in sources:
        build("wheel", source, folder)
    return folder


@pytest.mark.slow
def test_an_sdist_has_what_builds_it_and_its_licence_and_no_tests_that_could_not_run(sources):
    assert len(sources) == 1 + len(MEMBERS)
    for source in sources:
        assert {"LICENSE", "README.md", "pyproject.toml", "src"} <= {path.name for path in source.iterdir()}
        assert [
            path for path in source.rglob("*.py") if path.name == "conftest.py" or path.name.startswith("test_")
        ] == []
        assert "without tests" in (source / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    made = Environment(tmp_path_factory.mktemp("installed"), wheels)
    chosen = [wheel for wheel in sorted(wheels.glob("*.whl")) if "hhem" not in wheel.name]  # it brings torch
    made.install(shlex.join(["pip", "install", "--quiet", *map(str, chosen)]))
    return made


@pytest.mark.slow
def test_the_wheels_work_in_a_clean_environment(installed):
    program = (
        "import importlib.util, ragspan, ragspan_langchain, ragspan_llama_index, ragspan_nats, ragspan_receiver\n"
        "from ragspan import default_engine\n"
        "from ragspan.tools import datadog, langfuse, langsmith, mlflow, phoenix\n"
        "assert 'clean' in ragspan.__file__, ragspan.__file__\n"
        "assert ragspan_langchain.RagspanCallbackHandler().open_runs == 0\n"
        "assert ragspan_llama_index.RagspanCallbackHandler().open_spans == 0\n"
        "assert datadog.DatadogEmitter(api_key='k', ml_app='a').stats().waiting == 0\n"
        "assert langfuse.LangfuseEmitter(public_key='p', secret_key='s').stats().waiting == 0\n"
        "assert langsmith.LangSmithEmitter(api_key='k').stats().waiting == 0\n"
        "assert mlflow.MLflowEmitter(tracking_uri='http://localhost:5000').stats().waiting == 0\n"
        "assert ragspan_nats.NatsSink('nats://localhost:4222').stats().submitted == 0\n"
        "assert phoenix.PhoenixEmitter(base_url='http://localhost:6006').stats().waiting == 0\n"
        "assert default_engine().stats().submitted == 0\n"
        "print(importlib.util.find_spec('langchain_classic'))\n"
    )

    assert installed.python("-W", "error", "-c", program).split() == ["None"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("opentelemetry_instrumentor", ["ragspan_langchain", "ragspan_llama_index"]),
        ("ragspan_demo", ["langchain", "llama-index"]),
        ("ragspan_emitter", sorted(project(ROOT / "pyproject.toml")["entry-points"]["ragspan_emitter"])),
        ("ragspan_worker", ["nats", "otlp"]),
        ("ragspan_sink", ["nats", "tls"]),
        ("ragspan_source", ["mlflow", "phoenix"]),
    ],
)
def test_the_entry_points_can_be_loaded(installed, group, names):
    program = (
        "from importlib.metadata import entry_points\n"
        f"print(*sorted(point.name for point in entry_points(group={group!r}) if callable(point.load())), sep=',')\n"
    )

    assert installed.python("-c", program).strip().split(",") == names


# A newcomer's first lines, as the README has them. ------------------------------------------------------------------------------

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


@pytest.fixture(scope="module", params=["langchain", "llama-index"])
def framework(request):
    return request.param


@pytest.fixture(scope="module")
def environment(wheels, framework, tmp_path_factory):
    """After the README's first line, and with a program of the user's own."""
    made = Environment(tmp_path_factory.mktemp(framework), wheels)
    (made.folder / "app.py").write_text(PROGRAMS[framework].read_text(encoding="utf-8"), encoding="utf-8")
    install = line_of(README, 'pip install "ragspan[langchain]"').replace("langchain", framework)
    (made.shell if framework == "langchain" else made.install)(install)  # one by pip itself
    return made


@pytest.mark.slow
def test_one_command_and_two_lines_bring_scores_to_the_console(environment):
    lines = [line_of(README, "import ragspan"), "ragspan.configure()"]
    assert f"\n{lines[0]}\n\n{lines[1]}  #" in README
    program = environment.folder / "with_two_lines.py"
    program.write_text(
        "\n".join([*lines, (environment.folder / "app.py").read_text(encoding="utf-8")]), encoding="utf-8"
    )

    shown = environment.shell(f"python -W error {program.name}")

    assert re.search(r"^  faithfulness +1\.00 pass", shown, re.MULTILINE), shown


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ragspan run app.py", "ragspan run -m app"])
def test_one_command_does_so_without_a_line(environment, command):
    shown = environment.shell(command)

    assert re.search(r"^  faithfulness +1\.00 pass", shown, re.MULTILINE), shown


@pytest.mark.slow
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
