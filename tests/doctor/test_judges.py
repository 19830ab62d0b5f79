"""`ragspan judges`: which there are."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner
from whole_records import WholeRecords

from ragspan.cli import app
from ragspan.judges.presets import PRESETS

WHOLE = WholeRecords(Path(__file__).with_name("whole_judges.json"))
KEY = "sk-test-0123456789"


def test_all_are_listed_with_their_address_and_whether_their_key_is_set(set_variables, monkeypatch):
    for preset in PRESETS.values():
        for name in (*preset.keys, *preset.places):
            monkeypatch.delenv(name, raising=False)
    set_variables(MISTRAL_API_KEY=KEY, OPENAI_BASE_URL="https://user:password@gateway.example/v1")

    lines = CliRunner().invoke(app, ["judges"]).output.splitlines()
    known, found = WHOLE.told("judges", lines)

    assert found == known
    assert [line.split()[0] for line in lines[1:]] == [
        "overlap",
        *(f"{name}:<model>" for name in PRESETS),
        "hhem",
        "langchain",
    ]
    assert not any(secret in line for line in lines for secret in (KEY, "password"))
