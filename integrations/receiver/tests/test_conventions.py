"""Records of spans of OpenTelemetry's GenAI conventions and of Traceloop, and of OpenInference's other frameworks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from recorded_spans import ANSWER, PASSAGES, QUESTION, only, records_of

from ragspan.records import RagRecord
from ragspan_receiver.spans import SpanEvent, TracedSpan


def texts(record: RagRecord) -> list[str]:
    return [context.text for context in record.contexts or ()]


def test_a_message_without_readable_text_leaves_contexts_unknown_and_a_tools_result_of_autogen_is_read() -> None:
    """What nobody can read may be a document; AutoGen's instrumentor writes results of tools in a form of its own."""

    def asked(**last: Any) -> RagRecord:
        given = {"openinference.span.kind": "AGENT", "input.value": QUESTION, "output.value": ANSWER}
        found = {"openinference.span.kind": "TOOL", "tool.name": "search_docs", "output.value": PASSAGES[0]}
        messages = {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": QUESTION,
            "llm.input_messages.1.message.role": "function",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": ANSWER,
        }
        model = {"openinference.span.kind": "LLM", **messages, **last}
        spans = [span(1, None, "a"), span(2, 1, "b"), span(3, 1, "c")]
        spans = [replace(one, attributes=about) for one, about in zip(spans, (given, found, model), strict=True)]
        (record,) = records_of(spans, retrieval_tools=["search_docs"])
        return record

    assert (asked().contexts, asked().contexts_unknown) == (None, "picture")
    result = json.dumps({"name": "search_docs", "content": PASSAGES[0], "is_error": False})
    assert texts(asked(**{"llm.input_messages.1.function.0": result})) == [PASSAGES[0]]


# The GenAI conventions, as they are published


def span(number: int, parent: int | None, operation: str, **attributes: Any) -> TracedSpan:
    names = {name.replace("__", "."): value for name, value in attributes.items()}
    return TracedSpan(
        trace_id="0" * 31 + "1",
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=operation,
        start_ns=number,
        end_ns=10 - number,
        attributes={"gen_ai.operation.name": operation, **names},
        scope="opentelemetry.instrumentation.genai.answering",
    )


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


ASKED = {"role": "user", "parts": [{"type": "text", "content": text} for text in (PASSAGES[0], QUESTION)]}
SAID = message("assistant", ANSWER)
AGENT = span(
    1,
    None,
    "invoke_agent",
    gen_ai__agent__name="helpdesk",
    gen_ai__conversation__id="c-1",
    gen_ai__input__messages=json.dumps([message("user", QUESTION)]),
    gen_ai__output__messages=json.dumps([SAID]),
)
SEARCH = span(
    2,
    1,
    "retrieval",
    gen_ai__retrieval__query__text=QUESTION,
    gen_ai__data_source__id="handbook",
    gen_ai__retrieval__documents=json.dumps(
        [{"id": f"p{n}", "score": 0.9, "content": text} for n, text in enumerate(PASSAGES)]
    ),
)
MODEL = span(
    3,
    1,
    "chat",
    gen_ai__request__model="gpt-5",
    gen_ai__provider__name="openai",
    gen_ai__response__finish_reasons=["stop"],
    gen_ai__input__messages=json.dumps([ASKED]),
    gen_ai__output__messages=json.dumps([SAID]),
    gen_ai__system_instructions=json.dumps([{"type": "text", "content": "Be brief."}]),
)


def test_messages_may_be_in_an_event() -> None:
    bare = span(3, 1, "chat")
    told = {"gen_ai.input.messages": json.dumps([ASKED]), "gen_ai.output.messages": json.dumps([SAID])}
    event = SpanEvent(name="gen_ai.client.inference.operation.details", time_ns=5, attributes=told)
    model = TracedSpan(**{name: getattr(bare, name) for name in TracedSpan.__slots__} | {"events": [event]})

    assert texts(only([AGENT, SEARCH, model])) == [PASSAGES[0]]


def test_traceloop_tells_what_a_stream_was_called_with_when_it_ends() -> None:
    said = {"type": "constructor", "id": ["AIMessage"], "kwargs": {"content": ANSWER}}
    asked = {"text": QUESTION, "session": "c-1"}
    chain = span(
        1,
        None,
        "invoke_workflow",
        traceloop__span__kind="workflow",
        traceloop__entity__input=json.dumps({"inputs": {"input": ""}, "tags": []}),
        traceloop__entity__output=json.dumps({"outputs": ANSWER, "kwargs": {"inputs": asked}}),
    )
    parser = span(4, 1, "execute_task", traceloop__entity__input=json.dumps({"inputs": said}))
    record = only([chain, MODEL, parser])

    assert (record.question, record.response) == (QUESTION, ANSWER)


def test_messages_as_langchain_writes_them_in_dictionaries_are_read() -> None:
    asked = {"messages": [{"type": "human", "data": {"content": QUESTION}}]}
    told = {"messages": [*asked["messages"], {"type": "ai", "data": {"content": ANSWER}}]}
    workflow = {"traceloop.span.kind": "workflow", "traceloop.entity.input": json.dumps({"inputs": asked})}
    chain = span(1, None, "invoke_workflow", **workflow, **{"traceloop.entity.output": json.dumps({"outputs": told})})
    record = only([chain, MODEL])

    assert (record.question, record.response) == (QUESTION, ANSWER)


def test_without_prompts_it_is_not_known_which_documents_a_model_was_given() -> None:
    record = only([AGENT, SEARCH, span(3, 1, "chat")])

    assert (record.contexts, record.contexts_unknown, record.prompts_seen) == (None, "unseen_prompt", False)


@pytest.mark.parametrize("said", [[SEARCH, MODEL], [SEARCH, span(3, 1, "chat")], [MODEL]])
def test_a_request_whose_span_does_not_say_the_question_was_asked_what_its_first_step_was(
    said: list[TracedSpan],
) -> None:
    bare = span(1, None, "invoke_agent", gen_ai__agent__name="helpdesk")

    assert only([bare, *said]).question in {QUESTION, f"{PASSAGES[0]}\n{QUESTION}"}
    assert records_of([bare, span(3, 1, "chat")]) == [] or only([bare, span(3, 1, "chat")]).question is None


WORDS = {
    "openinference.span.kind": "CHAIN AGENT LLM RETRIEVER TOOL EVALUATOR EMBEDDING",
    "langfuse.observation.type": "span agent generation retriever tool evaluator embedding",
    "langsmith.span.kind": "chain agent llm retriever tool evaluator embedding",
    "gen_ai.operation.name": "invoke_workflow invoke_agent chat retrieval execute_tool evaluate create_agent",
    "traceloop.span.kind": "workflow agent chat retrieve tool evaluate embeddings",
    "ai.operationId": "ai.generateText - ai.generateText.doGenerate - ai.toolCall - ai.embed",
}
NAMES = {
    "openinference.span.kind": "input.value output.value llm.prompts llm.output_messages agent.name -"
    " llm.model_name llm.provider llm.finish_reason openinference.",
    "langfuse.observation.type": "langfuse.observation.input langfuse.observation.output - - - - langfuse.observation.model.name"
    " - - langfuse.trace.metadata.",
    "langsmith.span.kind": "gen_ai.prompt gen_ai.completion - - langsmith.trace.name - gen_ai.request.model gen_ai.system"
    " - langsmith.metadata.",
    "gen_ai.operation.name": "gen_ai.tool.call.arguments gen_ai.tool.call.result gen_ai.prompt gen_ai.completion"
    " gen_ai.workflow.name gen_ai.tool.call.id gen_ai.request.model gen_ai.provider.name"
    " gen_ai.response.finish_reasons gen_ai.",
    "traceloop.span.kind": "traceloop.entity.input traceloop.entity.output gen_ai.prompt gen_ai.completion"
    " traceloop.entity.name - gen_ai.request.model llm.system - traceloop.association.properties.",
    "ai.operationId": "ai.toolCall.input ai.toolCall.output ai.prompt ai.response.object"
    " ai.toolCall.name ai.toolCall.id ai.model.id ai.model.provider ai.response.finishReason ai.telemetry.metadata.",
}


@pytest.mark.parametrize("convention", WORDS)
def test_steps_of_every_kind(convention: str) -> None:
    """A chain's agent searches, uses a tool and asks a model; an evaluation asks one, too, and something else is outside."""
    chain, agent, model, search, tool, evaluation, other = WORDS[convention].split()
    given, gave, asked, said, named, call_id, of_model, provider, reason, about = NAMES[convention].split()
    texts = (given, gave) if asked == "-" else (asked, said)
    inner = 1 if agent == "-" else 2
    told = json.dumps({"blocks": [{"text": "It is"}, {"block_type": "image"}, {"text": "nine."}]})
    calls = [{"id": "c-1", "function": {"name": "clock", "arguments": json.dumps({"zone": 1})}}]
    prompt = json.dumps(
        [message("user", f"{PASSAGES[0]} {QUESTION}"), {"role": "assistant", "content": None, "tool_calls": calls}]
    )
    found = json.dumps([{"text": text} for text in PASSAGES])
    rows: list[tuple[int | None, str, dict[str, Any]]] = [
        (None, chain, {given: QUESTION, gave: ANSWER, asked: QUESTION, f"{about}plan": "basic"}),
        (1, agent, {named: "helpdesk", given: QUESTION, gave: ANSWER}),
        (inner, search, {given: QUESTION, gave: found}),
        (inner, tool, {named: "clock", call_id: "c-1", given: json.dumps({"zone": 1}), gave: told}),
        (inner, model, {of_model: "m", provider: "maker", reason: "stop", texts[0]: prompt, texts[1]: ANSWER}),
        (1, evaluation, {given: "Is it so?", gave: "Yes, it is."}),
        (6, model, {given: "Is it so?", gave: "Yes, it is.", asked: PASSAGES[1], said: "Yes, it is."}),
        (None, other, {given: QUESTION, gave: ANSWER}),
    ]
    spans = [
        replace(
            span(number, parent, "work"),
            attributes={convention: word} | about,
            start_ns=10 * number,
            end_ns=100 - number if number < 3 else 10 * number + 5,
        )
        for number, (parent, word, about) in enumerate(rows, 1)
        if word != "-"
    ]

    assert only(spans).response == ANSWER
