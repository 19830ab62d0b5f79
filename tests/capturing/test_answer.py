"""Answers that a program captures by a block, with what handlers saw inside of it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import TracerProvider

import ragspan
from ragspan import RagRecord, RetrievedContext
from ragspan.capturing import enclosing_answer
from ragspan.defaults import set_default_engine
from ragspan.messages import ErrorReport
from ragspan.records import ToolCall


def test_a_block_makes_one_record_of_what_was_set(sink):
    contexts, about = ["At night.", RetrievedContext(text="Daily.", rank=1)], {"metadata": {"plan": {"seats": 3}}}
    about |= {"question": "When?", "name": "desk", "session_id": "s", "user_id": "u", "tags": ["t"]}
    with ragspan.capture(sink=sink, **about) as answer:
        answer.contexts = contexts
        answer.response = "At night."

    (record,) = sink.records()
    assert record.ended_ns > record.started_ns
    times = {"record_id": "r", "started_ns": 1, "ended_ns": 1}
    whole = RagRecord(**about | times | {"tags": ("t",), "contexts": contexts, "response": "At night."})
    assert replace(record, **times) == whole


def test_what_was_not_set_is_unknown(sink, caplog):
    with ragspan.capture(sink=sink) as answer:
        answer.reponse = "At night."

    (record,) = sink.records()
    assert caplog.messages == ["an answer has no 'reponse': set its question, contexts and response"]
    assert (record.question, record.contexts, record.response) == (None, None, None)


@pytest.mark.parametrize(
    ("error", "status", "noted"),
    [
        (ValueError("x"), "error", ErrorReport(type="ValueError", message="x")),
        (asyncio.CancelledError(), "aborted", None),
        (KeyboardInterrupt(), "aborted", None),
    ],
)
def test_an_exception_passes_through_and_marks_the_answer(sink, error, status, noted):
    with pytest.raises(type(error)), ragspan.capture(sink=sink):
        raise error

    (record,) = sink.records()
    assert (record.status, record.error_type, record.error) == (status, noted and noted.name, noted)


def test_the_current_span_becomes_the_parent(sink):
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("app")
    with tracer.start_as_current_span("request") as span, ragspan.capture(sink=sink):
        pass

    parent = sink.records()[0].parent
    assert (parent.trace_id, parent.span_id) == (span.get_span_context().trace_id, span.get_span_context().span_id)


async def test_blocks_of_concurrent_tasks_do_not_mix(sink):
    async def ask(name):
        with ragspan.capture(question=name, sink=sink) as answer:
            await asyncio.sleep(0)
            ragspan.record_contexts([f"passage of {name}"])
            await asyncio.sleep(0)
            answer.response = name

    names = [f"q{number}" for number in range(20)]
    await asyncio.gather(*map(ask, names))

    records = sink.records()
    assert sorted(record.question for record in records) == sorted(names)
    assert all(
        record.contexts[0].text == f"passage of {record.question}" == f"passage of {record.response}"
        for record in records
    )


def test_a_block_may_be_left_in_another_context(sink):
    def lines():
        with ragspan.capture(question="q", sink=sink):
            yield "line"

    opened = lines()
    next(opened)
    closer = threading.Thread(target=opened.close)
    closer.start()
    closer.join()

    assert sink.records()[0].status == "aborted"
    assert enclosing_answer() is None


def test_what_integrations_saw_inside_fills_in_what_was_not_set(sink):
    seen, ended = RagRecord(question="seen", contexts=["seen"], response="seen"), []
    with ragspan.capture(sink=sink) as answer:
        enclosing_answer().part("integration", lambda: seen, ended.append)
        answer.response = "set"

    (record,) = sink.records()
    assert ended == [seen]
    assert (record.question, record.contexts[0].text, record.response) == ("seen", "seen", "set")


class Failing:
    """Raises as a sink, and where it is ended as a part."""

    def submit(self, capture):
        raise LookupError


def test_a_sink_that_raises_costs_the_record():
    with ragspan.capture(sink=Failing()) as answer:
        answer.response = "r"

    assert answer.closed


@pytest.mark.parametrize("name", ["RAGSPAN_QUEUE_SIZE", "RAGSPAN_SINK"])
def test_a_wrong_setting_is_logged_and_the_block_runs(monkeypatch, caplog, name):
    monkeypatch.setenv(name, "none")
    before = set_default_engine(None)
    try:
        for _ in range(3):
            with ragspan.capture() as answer:
                answer.response = "r"
    finally:
        assert set_default_engine(before) is None

    [line] = caplog.messages
    assert line.startswith(f"an answer or a part of it is not captured: {name}")


def test_background_that_handlers_saw_is_added(sink):
    seen = RagRecord(
        question=None,
        contexts=None,
        response="49 euros",
        background=["seen"],
        background_truncated=True,
        contexts_unknown="unmarked_text",
        prompts_seen=True,
        from_model=False,
    )
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        answer.background = ["set"]
        answer.part(sink, lambda: seen, lambda _: None)

    (record,) = sink.records()
    assert [one.text for one in record.background] == ["set", "seen"]
    assert record.background_truncated
    assert (record.contexts_unknown, record.prompts_seen, record.from_model) == ("unmarked_text", True, False)


def part(response, **seen):
    return RagRecord(question=None, contexts=None, response=response, **seen)


@pytest.mark.parametrize(
    ("by_hand", "expected"), [(None, ("49 euros", False, True)), ("It is free.", ("It is free.", None, True))]
)
def test_of_several_parts_the_last_one_with_a_response_answers_unless_one_is_set_by_hand(sink, by_hand, expected):
    """Two frameworks inside one block: a search by one, and then the answer by the other."""
    tools = [ToolCall(name="look_up", started_ns=1, ended_ns=2, within=around) for around in (None, 0)]
    parts = [
        part("found it", prompts_seen=True, from_model=True, tool_calls=tools),
        part("49 euros", prompts_seen=True, from_model=False, tool_calls=tools),
        part(None, prompts_seen=True),
    ]
    with ragspan.capture(question="Fee?", sink=sink) as answer:
        for seen in parts:
            answer.part(object(), lambda seen=seen: seen, lambda _: None)
        answer.response = by_hand

    (record,) = sink.records()
    assert (record.response, record.from_model, record.prompts_seen) == expected
    assert [tool.within for tool in record.tool_calls] == [None, 0, None, 2]
