"""The API reference has an entry for every public name.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/docs/test_reference.py`, and read the difference.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import runpy
from importlib.metadata import entry_points

import pytest
import yaml
from doc_pages import PAGES, ROOT, name_of

from ragspan.judges import OpenAIJudge
from ragspan.metrics.metric_catalogue import BUILT_IN

MODULES = (
    "ragspan",
    "ragspan.evaluate",
    "ragspan.evaluate.report",
    "ragspan.tools",
    *sorted({emitter.module for emitter in entry_points(group="ragspan_emitter")}),
    "ragspan.engine",
    "ragspan.judges",
    "ragspan.metrics",
    "ragspan.telemetry",
    "ragspan.testing",
    "ragspan_hhem",
    "ragspan_langchain",
    "ragspan_llama_index",
    "ragspan_nats",
)
ENTRIES = [
    entry
    for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
    for entry in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
SIGNATURES = ROOT / "tests" / "docs" / "whole_signatures.json"


def named(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_entry(module):
    home = importlib.import_module(module)
    documented = [named(entry) for entry in ENTRIES]

    assert [name for name in home.__all__ if not any(getattr(home, name) is one for one in documented)] == []


@pytest.mark.parametrize("module", MODULES)
def test_entries_are_public(module):
    entries = [entry for entry in ENTRIES if entry.rpartition(".")[0] == module]

    assert [entry for entry in entries if entry.rpartition(".")[2] not in importlib.import_module(module).__all__] == []


def parameters_of(call):
    """Names and defaults. Types are left out: each Python writes them otherwise."""
    signature = inspect.signature(call)
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return re.sub(r" at 0x\w+", "", str(signature.replace(parameters=bare, return_annotation=signature.empty)))


def calls_of(entry):
    """How a class or function and its public methods are called, and what of a dataclass Python writes."""
    one = named(entry)
    calls = inspect.getmembers(one) if inspect.isclass(one) else [("", one)]
    calls = [(name, call) for name, call in calls if inspect.isfunction(call) or inspect.ismethod(call)]
    ours = [(name, call) for name, call in calls if str(call.__module__).startswith("ragspan")]
    found = {name: parameters_of(call) for name, call in ours if name == "__init__" or name[:1] != "_"}
    written = getattr(one, "__dataclass_params__", None)
    return found | {f"dataclass {flag}": getattr(written, flag) for flag in ("eq", "frozen", "repr") if written}


def test_public_names_are_called_as_they_were_with_the_same_defaults():
    calls = {entry: found for entry in ENTRIES if (found := calls_of(entry))}
    if os.environ.get("WRITE_RECORDS"):
        SIGNATURES.write_text(json.dumps(calls, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    assert calls == json.loads(SIGNATURES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_metric_has_a_row_and_a_section(name):
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    guide = BUILT_IN[name].guide

    assert f"| `{name}` | {guide.question} |" in page
    assert re.search(rf"^`{name}` (is|says|counts) ", page, re.MULTILINE), "its section begins so"


def test_every_page_is_in_the_navigation():
    configured = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [name_of(page).removeprefix("docs/") for page in PAGES if name_of(page).startswith("docs/")]
    navigation = str(yaml.safe_load(configured)["nav"])

    assert [page for page in pages if f"'{page}'" not in navigation] == []


def test_the_files_that_contributors_are_sent_to_exist():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = ("src", "tests", "integrations", "benchmarks")
    files = [f"/{name_of(file)}" for folder in folders for file in (ROOT / folder).rglob("*.py")]
    named = re.findall(r"`([\w./]+\.py)`", page)

    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


def test_generated_parts_of_pages_are_what_the_code_says():
    generator = runpy.run_path(str(ROOT / ".ci" / "pages.py"))
    stale = [str(page.relative_to(ROOT)) for page, text, made in generator["pages"]() if text != made]

    assert stale == [], "run make pages"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_the_documented_options_are_those_of_a_provider():
    page = (ROOT / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", page.partition("## Options")[2].partition("\n## ")[0], re.MULTILINE)
    documented = set(re.findall(r"`(\w+)`", "\n".join(rows)))

    assert documented == set(inspect.signature(OpenAIJudge).parameters) - {"model", "provider", "client"}
