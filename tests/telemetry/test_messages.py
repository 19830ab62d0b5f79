"""Prompts and replies on the spans of model calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.messages import Message

SYSTEM = Message(role="system", text="Answer from the handbook.")
ASKED = Message(role="user", text="How long is a loan?")
SAID = Message(role="assistant", text="28 days.")


@pytest.fixture
def shown(telemetry, make_record, answer, call):
    """The attributes of a call with this prompt and reply."""

    def show(prompt, reply=None, **facts):
        generation = replace(call, prompt=tuple(prompt), reply=reply, **facts)
        answer(telemetry.emitter(capture_content=True), make_record(generations=(generation,)))
        span = telemetry.span("chat")
        assert span.dropped_attributes == 0
        return dict(span.attributes)

    return show


@pytest.mark.parametrize(("hidden", "left"), [("INPUTS", "output"), ("OUTPUT_MESSAGES", "input")])
def test_what_openinference_hides_stays_hidden(monkeypatch, shown, hidden, left):
    monkeypatch.setenv(f"OPENINFERENCE_HIDE_{hidden}", "true")
    attributes = shown([SYSTEM, ASKED], SAID)

    assert {name.split(".")[1] for name in attributes if name.endswith("messages")} == {left}
    assert ("gen_ai.system_instructions" in attributes) is (left == "input")
