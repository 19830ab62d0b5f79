"""The distributions as users install them."""

import importlib.util
import re
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
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


@pytest.mark.parametrize("member", MEMBERS, ids=lambda file: file.parent.name)
def test_what_a_member_instruments_it_also_depends_on(member):
    about = project(member)
    instruments = about.get("optional-dependencies", {}).get("instruments", [])

    assert set(instruments) <= set(about["dependencies"])


@pytest.mark.parametrize("file", [ROOT / "pyproject.toml", *MEMBERS], ids=lambda file: file.parent.name)
def test_every_dependency_has_a_floor(file):
    about = project(file)
    wanted = [
        *about["dependencies"],
        *(line for extra in about.get("optional-dependencies", {}).values() for line in extra),
    ]

    assert [line for line in wanted if ">=" not in line] == []


def test_the_constraints_name_no_address():
    assert "://" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def run(*command, cwd):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Installed:
    """An environment of its own that has the wheels, and an empty folder to work in."""

    bin: Path
    folder: Path

    def run(self, program, *arguments):
        return run(self.bin / program, *arguments, cwd=self.folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for project_folder in (ROOT, *(member.parent for member in MEMBERS)):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=project_folder)
    venv.create(folder / "clean", with_pip=True)
    environment = Installed(folder / "clean" / "bin", folder)
    wheels = [wheel for wheel in sorted((folder / "dist").glob("*.whl")) if "hhem" not in wheel.name]  # it brings torch
    wanted = ("--quiet", "-c", ROOT / "constraints.txt", *wheels)
    if importlib.util.find_spec("uv"):
        uv = (sys.executable, "-m", "uv", "pip", "install", "--link-mode=copy", "--python", environment.bin / "python")
        run(*uv, *wanted, cwd=folder)
    else:
        environment.run("python", "-m", "pip", "install", *wanted)
    return environment


@pytest.mark.slow
def test_the_wheels_work_in_a_clean_environment(installed):
    program = (
        "import importlib.util, ragspan, ragspan_datadog, ragspan_langchain, ragspan_langfuse, ragspan_langsmith, ragspan_llama_index, ragspan_mlflow, ragspan_nats, ragspan_otlp, ragspan_phoenix\n"
        "from ragspan import default_engine\n"
        "assert 'clean' in ragspan.__file__, ragspan.__file__\n"
        "assert ragspan_langchain.RagspanCallbackHandler().open_runs == 0\n"
        "assert ragspan_llama_index.RagspanCallbackHandler().open_spans == 0\n"
        "assert ragspan_datadog.DatadogEvaluations(api_key='k', ml_app='a').stats().offered == 0\n"
        "assert ragspan_langfuse.LangfuseScores(public_key='p', secret_key='s').stats().offered == 0\n"
        "assert ragspan_langsmith.LangSmithFeedback(api_key='k').stats().offered == 0\n"
        "assert ragspan_mlflow.MLflowAssessments(tracking_uri='http://localhost:5000').stats().offered == 0\n"
        "assert ragspan_nats.NatsSink('nats://localhost:4222').stats().submitted == 0\n"
        "assert ragspan_phoenix.PhoenixAnnotations(base_url='http://localhost:6006').stats().offered == 0\n"
        "assert default_engine().stats().submitted == 0\n"
        "print(importlib.util.find_spec('langchain_classic'))\n"
    )

    assert installed.run("python", "-W", "error", "-c", program).split() == ["None"]


@pytest.mark.slow
def test_what_a_registry_shows_of_them_has_no_link_that_works_only_here(installed):
    wheels = sorted((installed.folder / "dist").glob("*.whl"))
    links = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            about = archive.read(metadata).decode()
        links[wheel.name] = re.findall(r"\]\(([^)]+)\)", about)

    assert len(wheels) == 1 + len(MEMBERS)
    assert all(links.values())
    assert [link for of_wheel in links.values() for link in of_wheel if not link.startswith("https://")] == []


@pytest.mark.slow
def test_the_command_is_installed(installed):
    commands = installed.run("ragspan", "--help")

    assert [
        name
        for name in ("demo", "run", "doctor", "evaluate", "agree", "labels", "dead-letters", "worker")
        if name not in commands
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("opentelemetry_instrumentor", ["ragspan_langchain", "ragspan_llama_index"]),
        ("ragspan_demo", ["langchain", "llama-index"]),
        ("ragspan_emitter", ["datadog", "langfuse", "langsmith", "mlflow", "phoenix"]),
        ("ragspan_command", ["dead-letters"]),
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

    assert installed.run("python", "-c", program).strip().split(",") == names
