"""`ragspan judges`: which there are."""

from __future__ import annotations

from typer.testing import CliRunner

from ragspan.cli import app
from ragspan.judges.presets import PRESETS

KEY = "sk-test-0123456789"


def test_all_are_listed_with_their_address_and_whether_their_key_is_set(set_variables, monkeypatch):
    for preset in PRESETS.values():
        for name in (*preset.keys, *preset.places):
            monkeypatch.delenv(name, raising=False)
    set_variables(MISTRAL_API_KEY=KEY, OPENAI_BASE_URL="https://user:password@gateway.example/v1")

    lines = {line.split()[0]: line for line in CliRunner().invoke(app, ["judges"]).output.splitlines()}

    assert {f"{name}:<model>" for name in PRESETS} | {"overlap", "hhem", "langchain"} <= set(lines)
    assert lines["langchain"].endswith("from the package ragspan-langchain")
    assert "MISTRAL_API_KEY is set" in lines["mistral:<model>"]
    assert "GEMINI_API_KEY or GOOGLE_API_KEY: not set" in lines["gemini:<model>"]
    assert "none needed" in lines["ollama:<model>"]
    assert "https://api.anthropic.com/v1" in lines["anthropic:<model>"]
    assert "{AZURE_OPENAI_ENDPOINT}/openai/v1" in lines["azure:<model>"]
    assert "https://gateway.example/v1" in lines["openai:<model>"]
    assert "ragspan-hhem" in lines["hhem"]
    assert not any(secret in line for line in lines.values() for secret in (KEY, "password"))
