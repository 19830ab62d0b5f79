"""What a program sets of an answer: texts, documents and prompts, and what is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import ragspan
from ragspan import Background, RetrievedContext


class Unreadable:
    """A document whose text is loaded when it is asked for, and the store is gone."""

    def __init__(self, error):
        self._error = error

    @property
    def page_content(self):
        raise self._error


def test_a_document_that_cannot_be_read_costs_itself_and_nothing_else(sink, caplog):
    error = LookupError("secret")
    with ragspan.capture(sink=sink) as answer:
        ragspan.record_contexts(iter(["recorded", Unreadable(error)]))
        answer.contexts = ["first", Unreadable(error), "last"]

    assert [context.text for context in sink.records()[0].contexts] == ["first", "last", "recorded"]
    assert "this Unreadable has none" in caplog.text
    assert "secret" not in caplog.text


def test_a_program_may_say_that_no_context_reaches_the_prompt(sink):
    for said in ([], (), iter(())):
        with ragspan.capture(sink=sink):
            ragspan.record_contexts(said)
        with ragspan.capture(sink=sink):
            ragspan.record_contexts(said)
            ragspan.record_contexts(["but this one does"])

    assert [[context.text for context in record.contexts] for record in sink.records()] == [
        [],
        ["but this one does"],
    ] * 3


def test_contexts_where_no_answer_is_captured_are_warned_of_once_a_minute(caplog, monkeypatch):
    for _ in range(3):
        ragspan.record_contexts(["nobody's secret"])
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    ragspan.record_contexts(["nobody's secret"])

    [line] = caplog.messages
    assert line.startswith("record_contexts was called where no answer is captured, so it has no effect: call it ")


def test_dictionaries_of_a_store_are_contexts(sink):
    with ragspan.capture(sink=sink) as answer:
        answer.contexts = [{"text": "Card payments settle within two days.", "id": 7, "score": 0.5, "url": "a.html"}]
        ragspan.record_contexts([{"content": "Refunds take a week."}])

    [record] = sink.records()
    assert record.contexts == (
        RetrievedContext(text="Card payments settle within two days.", id="7", score=0.5, source="a.html"),
        RetrievedContext(text="Refunds take a week."),
    )


def test_background_and_the_prompt_can_be_set(sink):
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        answer.contexts = ["Cards are grey."]
        answer.background = ["49 euros", Background(text="rows: 1", kind="tool")]
        answer.prompt = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Fee?"}, {"type": "image_url"}, {"text": "Now."}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            SimpleNamespace(role="tool", content="rows: 1"),
        ]
        answer.response = "49 euros"

    (record,) = sink.records()
    assert record.background == (Background(text="49 euros"), Background(text="rows: 1", kind="tool"))
    (model,) = record.generations
    assert [(message.role, message.text, len(message.tool_requests)) for message in model.prompt] == [
        ("system", "Be brief.", 0),
        ("user", "Fee?\nNow.", 0),
        ("assistant", "", 1),
        ("tool", "rows: 1", 0),
    ]
    assert record.prompts_seen


@pytest.mark.parametrize("prompt", [7, [7], [{"content": "no role"}], {"role": "user"}])
def test_a_prompt_that_is_none_is_logged_and_left_out(sink, prompt, caplog):
    with ragspan.capture(sink=sink) as made:
        made.prompt = prompt
        made.background = 7
        made.response = "49 euros"

    (record,) = sink.records()
    assert (record.generations, record.prompts_seen, record.background) == ((), False, ())
    assert "a prompt is a text, or a list of messages with a role and a content" in caplog.text
    assert "background is a sequence of texts" in caplog.text
