"""Data: whether they can be changed and are compared, what is given by name, and what stands for what is left out.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/test_data.py`, and read the difference.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest
from whole_records import WholeRecords

import ragspan

WHOLE = WholeRecords(Path(__file__).with_name("whole_data.json"))
ROOT = Path(ragspan.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if "@dataclass" in path.read_text("utf-8")]


def told(one):
    """A field, its default, and what is unusual in it."""
    value = sorted(one.default) if isinstance(one.default, frozenset) else one.default
    shown = repr(value) if isinstance(value, (str, int, float, tuple, list, type(None))) else type(value).__name__
    if value is MISSING:
        shown = "" if one.default_factory is MISSING else f"{one.default_factory.__name__}()"
    lacking = (f"not {way}" for way in ("kw_only", "init", "repr", "compare") if not getattr(one, way))
    return " ".join(filter(None, [one.name, shown, *lacking]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_data_are_of_the_kind_and_have_the_defaults_that_are_in_a_file(path):
    name = ".".join(("ragspan", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    own = [one for one in vars(import_module(name)).values() if isinstance(one, type) and one.__module__ == name]
    found = {
        one.__name__: [
            *(way for way in ("frozen", "eq", "repr", "order") if getattr(one.__dataclass_params__, way)),
            *(["slots"] if "__slots__" in vars(one) else []),
            *(told(field) for field in fields(one) if field.name[0] != "_"),
        ]
        for one in own
        if is_dataclass(one) and one.__name__[0] != "_"
    }
    known, found = WHOLE.told(name, found)

    assert found == known
