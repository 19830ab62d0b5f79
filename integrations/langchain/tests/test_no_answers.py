"""Calls that answer nothing make no record, also where every call of the process is captured."""

from __future__ import annotations

import json

import pytest
from agent_programs import calls, scripted_model, search_tool
from captures import Answered
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from langchain_core.tools import tool
from rag_programs import ANSWER, FOUND, PROMPT, QUESTION, chat_model, documents, join_texts, rag_chain, retriever


@tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


PARTS = {
    "text parser": lambda config: StrOutputParser().invoke(AIMessage(ANSWER), config),
    "json parser": lambda config: JsonOutputParser().invoke('{"a": "b"}', config),
    "streamed parser": lambda config: list(CommaSeparatedListOutputParser().stream("a, b", config)),
    "prompt": lambda config: ChatPromptTemplate.from_messages([("human", "{q}"), ("ai", "I ")]).invoke("q", config),
    "tool": lambda config: multiply.invoke({"a": 2, "b": 3}, config),
    "search tool": lambda config: search_tool().invoke("pump", config),
    "retriever": lambda config: retriever().invoke(QUESTION, config),
    "retriever and formatter": lambda config: (retriever() | join_texts).invoke(QUESTION, config),
    "streamed retriever and formatter": lambda config: list((retriever() | join_texts).stream(QUESTION, config)),
    "documents as JSON": lambda config: (
        retriever() | (lambda found: json.dumps([each.model_dump() for each in found]))
    ).invoke(QUESTION, config),
    "documents in a field": lambda config: (retriever() | (lambda found: {"context": join_texts(found)})).invoke(
        QUESTION, config
    ),
    "formatter": lambda config: RunnableLambda(join_texts).invoke(documents(*FOUND), config),
}


@pytest.mark.parametrize("call", PARTS.values(), ids=PARTS)
def test_a_part_of_a_program_alone(captured, call):
    call(captured.config)

    assert captured.records() == []


def test_a_function_that_answers_by_itself_is_a_request(captured):
    """Nothing tells it from a guard or a branch with a fixed sentence."""
    RunnableLambda(lambda question: "Good day!").invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], "Good day!")]


# Programs elsewhere


class RemoteRunnable(Runnable):
    """Reports to callbacks what LangServe's client does; the program runs on a server, unseen."""

    def invoke(self, question, config=None, **kwargs):
        return self._call_with_config(lambda _: ANSWER, question, config)

    async def astream_events(self, question, config=None, **kwargs):
        config = ensure_config(config)
        manager = get_async_callback_manager_for_config(config)
        run = await manager.on_chain_start(dumpd(self), question, name=config.get("run_name"))
        events = [
            {
                "event": "on_chain_start",
                "run_id": "1",
                "name": "rag",
                "tags": [],
                "metadata": {},
                "data": {"input": question},
            },
            *({"event": "on_chain_stream", "run_id": "1", "data": {"chunk": word}} for word in ANSWER.split() * 100),
            {"event": "on_chain_end", "run_id": "1", "name": "rag", "tags": [], "data": {"output": ANSWER}},
        ]
        for event in events:
            yield event
        await run.on_chain_end(events)


async def test_the_events_of_a_remote_program_are_not_its_answer(captured):
    async for _ in RemoteRunnable().astream_events(QUESTION, captured.config):
        pass

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Answers that are objects


PREPARED = {"context": retriever() | join_texts, "question": RunnablePassthrough()}
STRUCTURED = {"years": 3, "reason": "It says so on page one."}
CITED = {"answer": ANSWER, "citations": [0]}
CITING = AIMessage("", tool_calls=calls(("cited_answer", CITED)).tool_calls)


def structured_answer(captured):
    """The answer to `QUESTION` from the three documents, read as JSON."""
    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "complete")
    return json.loads(answer.response)


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_message_that_answers_by_a_tool_call(captured, call):
    list(getattr(PREPARED | PROMPT | scripted_model(CITING), call)(QUESTION, captured.config))

    assert structured_answer(captured) == CITED


@pytest.mark.parametrize("name", ["answer", "message", "cited"])
def test_a_message_with_a_tool_call_beside_documents(captured, name):
    program = RunnableParallel(**{name: PREPARED | PROMPT | scripted_model(CITING), "docs": retriever()})
    program.invoke(QUESTION, captured.config)

    assert structured_answer(captured) == CITED


def test_a_conversation_that_ends_with_a_tool_call(captured):
    (PREPARED | PROMPT | scripted_model(CITING) | (lambda message: {"messages": [message]})).invoke(
        QUESTION, captured.config
    )

    assert structured_answer(captured) == CITED


def test_tool_calls_that_the_caller_gets_without_their_message(captured):
    (PREPARED | PROMPT | scripted_model(CITING) | (lambda message: message.tool_calls)).invoke(
        QUESTION, captured.config
    )

    assert structured_answer(captured) == [CITED]


def test_two_tool_calls_are_a_list(captured):
    both = calls(("cited_answer", CITED), ("cited_answer", STRUCTURED))
    (PREPARED | PROMPT | scripted_model(both)).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == [CITED, STRUCTURED]


def test_a_draft_by_a_tool_call_that_another_model_comments_on(captured):
    """The documents are those of the call that answered, not of the one that spoke last."""

    def comment(message):
        chat_model("Nice.").invoke("Comment.")
        return message

    (PREPARED | PROMPT | scripted_model(CITING) | comment).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == CITED


def nested(depth):
    return {"years": 3} if depth == 0 else {"part": [nested(depth - 1)]}


@pytest.mark.parametrize("depth", [2, 4, 10, 20])
@pytest.mark.parametrize("form", [lambda said: said, lambda said: {"answer": said}, lambda said: {"answer": (said,)}])
def test_a_deep_object_is_whole(captured, depth, form):
    said = chat_model(json.dumps(nested(depth)))
    (PREPARED | PROMPT | said | JsonOutputParser() | form).invoke(QUESTION, captured.config)

    response = captured.answer().response
    assert response.count('"part"') == depth
    assert '{"years": 3}' in response


def test_what_is_too_large_says_that_something_is_missing(captured):
    rows = [{"row": [number]} for number in range(5000)]
    (rag_chain() | (lambda text: {"answer": rows})).invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert "…" in json.loads(answer.response)
    assert len(answer.response) < 20_000
