"""Prompts and replies on the spans of model calls."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragspan.messages import Message

SYSTEM = Message(role="system", text="Answer from the handbook.")
ASKED = Message(role="user", text="How long is a loan?")
SAID = Message(role="assistant", text="28 days.")


@pytest.fixture
def shown(telemetry, make_record, answer, call):
    """The attributes of a call with this prompt and reply."""

    def show(prompt, reply=None, *, capture_content=True, openinference=True, **facts):
        generation = replace(call, prompt=tuple(prompt), reply=reply, **facts)
        emitter = telemetry.emitter(capture_content=capture_content, openinference=openinference)
        answer(emitter, make_record(generations=(generation,)))
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


def test_a_long_conversation_keeps_its_instructions_and_its_end(shown):
    turns = [Message(role="user", text=f"question {number} " + "x" * 3000) for number in range(50)]
    attributes = shown([SYSTEM, *turns])

    messages = json.loads(attributes["gen_ai.input.messages"])
    assert len(attributes["gen_ai.input.messages"]) <= 8192
    assert json.loads(attributes["gen_ai.system_instructions"])[0]["content"] == SYSTEM.text
    assert messages[-1]["parts"][0]["content"].startswith("question 49 xxx")
    assert messages[-1]["parts"][0]["content"].endswith("…")
    assert attributes["llm.input_messages.20.message.content"].startswith("question 49")
