"""Plain functions in chains, calls that answer nothing, and how runs find the request that they belong to."""

from __future__ import annotations

import json

import langsmith
import pytest
from agent_programs import search_tool
from captures import Answered
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, chain
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from langchain_core.tools import tool
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    answer_chain,
    documents,
    join_texts,
    look_up,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


class OfflineClient(langsmith.Client):
    """LangSmith without its network."""

    def create_run(self, *args, **kwargs):
        pass

    def update_run(self, *args, **kwargs):
        pass


@pytest.fixture
def langsmith_tracing():
    """Functions decorated with LangSmith's `traceable` make runs that handlers never see."""
    client = OfflineClient(api_url="http://localhost:9", api_key="none", auto_batch_tracing=False)
    with langsmith.tracing_context(enabled=True, client=client):
        yield


def answer_from(found, question):
    return answer_chain().invoke({"context": join_texts(found), "question": question})


# Calls inside functions


def test_a_step_that_returns_documents_with_scores(captured):
    def with_scores(question):
        return [(document, 0.25) for document in look_up(question)]

    program = rag_chain(RunnableLambda(with_scores), formatter=lambda pairs: join_texts(found for found, _ in pairs))
    program.invoke(QUESTION, captured.config)

    record = captured.record()
    assert Answered.of(record) == ON_THE_PUMP
    assert [context.score for context in record.contexts] == [0.25]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_step_that_is_given_a_text_and_finds_nothing(captured, call):
    program = rag_chain(RunnableLambda(lambda question: []), formatter=str)
    list(getattr(program, call)(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_passages_of_a_class_of_the_programs_own_are_not_observable(captured):
    class Passage:
        text = PUMP

    program = rag_chain(RunnableLambda(lambda question: [Passage()]), formatter=lambda found: found[0].text)
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Functions that stream


def shouting_chain():
    """What the reader gets counts, not what the model said."""

    def shout(texts):
        for text in texts:
            yield text.upper()

    return rag_chain() | shout


def test_a_generator_step_that_rewrites_the_words_of_the_stream(captured):
    assert "".join(shouting_chain().stream(QUESTION, captured.config)) == ANSWER.upper()
    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER.upper())]


def test_a_rewritten_stream_that_is_closed(captured):
    """LangChain adds a piece to the output when the reader asks for the next one, so the last piece is missing."""
    stream = shouting_chain().stream(QUESTION, captured.config)
    read = "".join(next(stream) for _ in range(3))
    stream.close()

    answer = captured.answer()
    assert (answer.contexts, answer.status) == (FOUND, "aborted")
    assert answer.response
    assert read.startswith(answer.response)


# One request, one record


def test_a_function_of_another_tracer_inside_the_chain(captured, langsmith_tracing):
    """The search's parent is a run of LangSmith's that the handler never sees; it is still the same request."""

    @langsmith.traceable
    def find(question):
        return retriever().invoke(question, captured.config)

    @chain
    def rag(question):
        return answer_from(find(question), question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


# Calls that answer nothing make no record, also where every call of the process is captured


@tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


PARTS = {
    "text parser": lambda config: StrOutputParser().invoke(AIMessage(ANSWER), config),
    "json parser": lambda config: JsonOutputParser().invoke('{"a": "b"}', config),
    "streamed parser": lambda config: list(CommaSeparatedListOutputParser().stream("a, b", config)),
    "prompt": lambda config: ChatPromptTemplate.from_messages([("human", "{q}"), ("ai", "I ")]).invoke("q", config),
    "chain that fills a prompt": lambda config: (
        (lambda q: {"q": q}) | ChatPromptTemplate.from_template("{q}!")
    ).invoke("q", config),
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
    """Nothing tells a guard or a branch with a fixed sentence from a client that nobody sees."""
    RunnableLambda(lambda question: "Good day!").invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, "Good day!")]


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
            {"event": "on_chain_start", "run_id": "1", "name": "rag", "data": {"input": question}},
            *({"event": "on_chain_stream", "run_id": "1", "data": {"chunk": word}} for word in ANSWER.split() * 100),
            {"event": "on_chain_end", "run_id": "1", "name": "rag", "data": {"output": ANSWER}},
        ]
        for event in events:
            yield event
        await run.on_chain_end(events)


async def test_the_events_of_a_remote_program_are_not_its_answer(captured):
    async for _ in RemoteRunnable().astream_events(QUESTION, captured.config):
        pass

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]
