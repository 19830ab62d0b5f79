"""What belongs to one request, the Vercel AI SDK's own spans, and what is said of spans that nobody reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded_spans import records_of

from ragspan_receiver.spans import SpanEvent, TracedSpan

CELLO = "The cello has four strings and is played sitting down on a chair."
HARP = "The harp has forty-seven strings and seven pedals in all of them."
FIRST, SECOND = "How many strings does the cello have?", "And how many has the harp?"
FOUR, MANY = "The cello has four strings.", "The harp has forty-seven strings."


def span(
    number: int,
    parent: int | None,
    attributes: dict[str, Any],
    *,
    name: str = "span",
    scope: str = "openinference.instrumentation.openai",
    events: tuple[SpanEvent, ...] = (),
) -> TracedSpan:
    return TracedSpan(
        trace_id="0" * 31 + "1",
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=name,
        start_ns=number * 10,
        end_ns=number * 10 + 5,
        attributes=attributes,
        scope=scope,
        events=events,
    )


def handled(number: int, parent: int, question: str, document: str, prompt: str, answer: str) -> list[TracedSpan]:
    """A plain span with a search and a model below it, of plain code."""
    given = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": prompt}
    said = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": answer}
    search = {"input.value": question, "retrieval.documents.0.document.content": document}
    return [
        span(number, parent, {}, name="handle"),
        span(number + 1, number, {"openinference.span.kind": "RETRIEVER", **search}),
        span(number + 2, number, {"openinference.span.kind": "LLM", **given, **said}),
    ]


def test_steps_of_one_request_in_several_spans_are_one_record():
    """The second one was told what the first one found and said."""
    first = handled(10, 1, FIRST, CELLO, f"{CELLO}\n{FIRST}", FOUR)
    second = handled(20, 1, SECOND, HARP, f"{FOUR}\n{HARP}\n{SECOND}", MANY)
    graded = span(30, 1, {"openinference.span.kind": "CHAIN"}, name="FaithfulnessEvaluator")
    grade = handled(40, 30, "Is it so?", CELLO, f"{HARP}\nIs it so?", "Yes, it is all there.")
    (record,) = records_of([span(1, None, {}, name="ask"), *first, *second, graded, *grade])

    assert record.response == MANY
    assert [context.text for context in record.contexts or ()] == [CELLO, HARP]


# The Vercel AI SDK


def vercel(number: int, parent: int | None, operation: str, **attributes: Any) -> TracedSpan:
    given = {name.replace("__", "."): value for name, value in attributes.items()}
    return span(number, parent, {"ai.operationId": operation, **given}, name=operation, scope="ai")


def test_the_vercel_sdk_s_own_spans_with_a_tool_that_searches():
    call = {"toolCallId": "c-1", "toolName": "search_docs", "input": {"query": "cello"}}
    result = {"type": "tool-result", "toolCallId": "c-1", "toolName": "search_docs"}
    asked = [{"role": "user", "content": [{"type": "text", "text": FIRST}]}]
    told = [
        *asked,
        {"role": "assistant", "content": [{"type": "tool-call", **call}]},
        {"role": "tool", "content": [{**result, "output": {"type": "json", "value": [CELLO, HARP]}}]},
    ]
    spans = [
        vercel(1, None, "ai.generateText", ai__prompt=json.dumps({"prompt": FIRST}), ai__response__text=FOUR),
        vercel(
            2,
            1,
            "ai.generateText.doGenerate",
            ai__prompt__messages=json.dumps(asked),
            ai__response__toolCalls=json.dumps([call]),
        ),
        vercel(
            3,
            1,
            "ai.toolCall",
            ai__toolCall__name="search_docs",
            ai__toolCall__id="c-1",
            ai__toolCall__args=json.dumps({"query": "cello"}),
            ai__toolCall__result=json.dumps([CELLO, HARP]),
        ),
        vercel(
            4,
            1,
            "ai.generateText.doGenerate",
            ai__prompt__messages=json.dumps(told),
            ai__response__text=FOUR,
            ai__telemetry__metadata__sessionId="s-1",
        ),
    ]
    (record,) = records_of(spans, retrieval_tools=["search_docs"])

    assert (record.question, record.response) == (FIRST, FOUR)
    assert [context.text for context in record.contexts or ()] == [CELLO, HARP]


# What nobody reads


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"gen_ai.operation.name": "embeddings"}, None),
        ({"openinference.span.kind": "EMBEDDING", "llm.model_name": "m"}, None),
        ({"gen_ai.operation.name": "dream"}, "spans of 'acme' are of no convention that is read: dream"),
        *(
            ({name: "x"}, "spans of 'acme' are of no convention that is read: without gen_ai.operation.name")
            for name in ("gen_ai.system", "llm.x", "ai.x", "gcp.vertex.agent.x", "mlflow.spanType", "lmnr.span.type")
        ),
        (
            {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
            "calls of models by 'acme' have no texts: content is off, or in a form that is not read",
        ),
    ],
)
def test_spans_that_cannot_be_read_are_named_once(caplog, attributes, told):
    scope = f"acme {next(iter(attributes))}"  # its lines come once a minute, whichever test they are of
    for _ in range(3):
        assert records_of([span(1, None, attributes, scope=scope)]) == []

    assert [line for line in caplog.messages if scope in line] == ([told.replace("acme", scope)] if told else [])
