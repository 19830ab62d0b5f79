"""Requests that are cancelled, left or broken: the status, and what the caller had got by then."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest
from agent_programs import RagState, retrieve_node, sequence
from captures import Answered, until
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_programs import (
    ANSWER,
    FOUND,
    PROMPT,
    QUESTION,
    BrokenModel,
    FailingRetriever,
    HangingModel,
    StreamingModel,
    answer_chain,
    chat_model,
    first_chunks,
    join_texts,
    rag_chain,
    retriever,
)

# Streams that their reader leaves


async def test_a_stream_that_is_never_read_is_no_request(captured):
    rag_chain().stream(QUESTION, captured.config).close()
    await rag_chain().astream(QUESTION, captured.config).aclose()

    assert captured.answers() == []


async def test_a_stream_closed_before_the_model_has_said_a_word(captured):
    """The first chunk holds the documents, which the reader gets while the model is still thinking."""
    thinking = asyncio.Event()

    class SilentModel(HangingModel):
        async def _astream(self, *args, **kwargs):
            self.waiting()
            await asyncio.Event().wait()
            yield

    program = RunnablePassthrough.assign(
        context=RunnableLambda(lambda fields: fields["question"]) | retriever()
    ).assign(answer=answer_chain(SilentModel(waiting=thinking.set)))
    stream = program.astream({"question": QUESTION}, captured.config)
    chunk = await anext(stream)
    while "context" not in chunk:
        chunk = await anext(stream)
    reader = asyncio.create_task(anext(stream))
    await thinking.wait()
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    await stream.aclose()
    del stream, reader
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, None, "aborted")]


@pytest.mark.parametrize("copies", [1, 2], ids=["once", "twice in the list"])
async def test_an_asynchronous_stream_that_is_dropped_and_collected(captured, copies):
    stream = rag_chain().astream(QUESTION, {"callbacks": [captured.handler] * copies})
    for _ in range(3):
        await anext(stream)
    del stream
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


async def test_a_stream_of_events_that_is_closed_among_the_tokens(captured):
    """Events are passed on by a queue, so that the model may be a token ahead of the reader."""
    stream = rag_chain().astream_events(QUESTION, captured.config, version="v2")
    async for event in stream:
        if event["event"] == "on_chat_model_stream":
            break
    await stream.aclose()
    del stream
    gc.collect()
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "aborted")
    assert ANSWER.startswith(answer.response)


@pytest.mark.parametrize(("read", "status"), [(2, "aborted"), (3, "complete")])
def test_a_stream_that_is_closed_after_its_last_token_is_complete(captured, read, status):
    with contextlib.closing(
        rag_chain(model=StreamingModel(tokens=list("abc"))).stream(QUESTION, captured.config)
    ) as stream:
        assert "".join(next(stream) for _ in range(read)) == "abc"[:read]

    assert (record := captured.record()).status == status
    assert record.response == "abc"[:read]


# Requests that fail, and programs that recover


def die(text):
    if text == "runs ":
        raise ConnectionResetError


def dying_model():
    return StreamingModel(tokens=["It ", "runs ", "for ", "three ", "years."], then=die)


def dying():
    return rag_chain(model=dying_model())


def dying_graph():
    def answer(state: RagState):
        fields = {"question": state["question"], "context": join_texts(state["context"])}
        return {"answer": (PROMPT | dying_model()).invoke(fields).text}

    return sequence(RagState, retrieve_node, answer)


def parsed():
    return {"context": retriever() | join_texts, "question": RunnablePassthrough()} | PROMPT | chat_model()


async def read(stream):
    return [chunk async for chunk in stream]


FAILURES = {
    "retriever": (lambda *asked: rag_chain(FailingRetriever()).invoke(*asked), [], None, "ConnectionError"),
    "retriever in a stream": (
        lambda *asked: list(rag_chain(FailingRetriever()).stream(*asked)),
        [],
        None,
        "ConnectionError",
    ),
    "model": (lambda *asked: rag_chain(model=BrokenModel()).invoke(*asked), FOUND, None, "RuntimeError"),
    "model in a stream": (lambda *asked: list(dying().stream(*asked)), FOUND, "It runs ", "ConnectionResetError"),
    "model in an asynchronous stream": (
        lambda *asked: asyncio.run(read(dying().astream(*asked))),
        FOUND,
        "It runs ",
        "ConnectionResetError",
    ),
    "model in a graph's stream of messages": (
        lambda question, config: list(dying_graph().stream({"question": question}, config, stream_mode="messages")),
        FOUND[:1],
        "It runs ",
        "ConnectionResetError",
    ),
    # The caller does not get the answer then. In a stream the function takes all of it before it returns.
    "later step": (
        lambda *asked: (rag_chain() | (lambda answer: 1 / 0)).invoke(*asked),
        FOUND,
        None,
        "ZeroDivisionError",
    ),
    "parser": (lambda *asked: (parsed() | JsonOutputParser()).invoke(*asked), FOUND, None, "OutputParserException"),
}


@pytest.mark.parametrize(("ask", "contexts", "received", "error"), FAILURES.values(), ids=FAILURES)
def test_a_part_that_fails(captured, ask, contexts, received, error):
    with contextlib.suppress(Exception):
        ask(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, contexts, received, "error", error)]
