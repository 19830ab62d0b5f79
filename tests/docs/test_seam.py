"""Integrations import what their page lists, and nothing else of ragspan."""

from __future__ import annotations

import ast
import re

from doc_pages import ROOT

PAGE = (ROOT / "docs" / "integration-authors.md").read_text(encoding="utf-8")
LISTED = {
    module
    for row in re.findall(r"^\|[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    for module in re.findall(r"`(ragspan[\w.]*)`", row)
}


def imported_by_integrations():
    """Each module of ragspan that one of their files imports, and the names that it takes of it."""
    for path in ROOT.glob("integrations/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "ragspan":
                yield from ((path.name, f"ragspan.{each.name}", []) for each in node.names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragspan."):
                yield path.name, node.module, [each.name for each in node.names]
            elif isinstance(node, ast.Import):
                yield from ((path.name, each.name, []) for each in node.names if each.name.startswith("ragspan."))


IMPORTED = list(imported_by_integrations())


def test_integrations_import_only_modules_of_the_page():
    assert [(file, module) for file, module, _ in IMPORTED if module not in LISTED] == []


def test_the_page_lists_no_more_than_they_import():
    assert sorted(LISTED - {module for _, module, _ in IMPORTED}) == []


def test_nothing_that_they_import_has_a_private_name():
    private = [name for _, module, names in IMPORTED for name in (*module.split("."), *names) if name.startswith("_")]

    assert private == []
