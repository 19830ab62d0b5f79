"""The distributions as users install them."""

import importlib.util
import subprocess
import sys
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


@pytest.mark.slow
def test_the_wheels_install_into_a_clean_environment_and_work(tmp_path):
    for folder in (ROOT, *(member.parent for member in MEMBERS)):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=folder)
    wheels = sorted((tmp_path / "dist").glob("*.whl"))
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    constraints = ("-c", ROOT / "constraints.txt")
    if importlib.util.find_spec("uv"):
        run(
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            *constraints,
            *wheels,
            cwd=tmp_path,
        )
    else:
        run(python, "-m", "pip", "install", "--quiet", *constraints, *wheels, cwd=tmp_path)
    program = (
        "import importlib.util, ragspan, ragspan_langchain\n"
        "from ragspan.demo.corpus import documentation\n"
        "from ragspan import default_engine\n"
        "from ragspan_langchain import RagspanCallbackHandler\n"
        "assert 'clean' in ragspan.__file__, ragspan.__file__\n"
        "assert RagspanCallbackHandler().open_runs == 0\n"
        "assert default_engine().stats().submitted == 0\n"
        "print(len(documentation()), importlib.util.find_spec('langchain_classic'))\n"
    )

    passages, extra = run(python, "-W", "error", "-c", program, cwd=tmp_path).split()

    assert int(passages) > 5
    assert extra == "None"
    assert "demo" in run(tmp_path / "clean" / "bin" / "ragspan", "--help", cwd=tmp_path)
