"""Every way to call a chain gives the same record."""

from __future__ import annotations

import asyncio
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from captures import Answered, InAnyOrder
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from rag_programs import (
    ANSWER,
    FILTER,
    FOUND,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    FixedRetriever,
    TopicRetriever,
    chat_model,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
TOPICAL = [
    Answered("What of the pump?", [PUMP], ANSWER),
    Answered("And the hose?", [HOSE], ANSWER),
    Answered("Filter or motor?", [FILTER, MOTOR], ANSWER),
]


async def read(stream):
    return [chunk async for chunk in stream]


async def words():
    yield "How long is the "
    yield "warranty on the pump?"


def manager_of(handlers):
    return CallbackManager(handlers=handlers, inheritable_handlers=handlers)


CALLS = {
    "invoke": lambda config: rag_chain().invoke(QUESTION, config),
    "ainvoke": lambda config: asyncio.run(rag_chain().ainvoke(QUESTION, config)),
    "stream": lambda config: list(rag_chain().stream(QUESTION, config)),
    "astream": lambda config: asyncio.run(read(rag_chain().astream(QUESTION, config))),
    "astream_events v1": lambda config: asyncio.run(read(rag_chain().astream_events(QUESTION, config, version="v1"))),
    "astream_events v2": lambda config: asyncio.run(read(rag_chain().astream_events(QUESTION, config, version="v2"))),
    "astream_log": lambda config: asyncio.run(read(rag_chain().astream_log(QUESTION, config))),
    "transform": lambda config: list(
        rag_chain().transform(iter(["How long is the ", "warranty on the pump?"]), config)
    ),
    "atransform": lambda config: asyncio.run(read(rag_chain().atransform(words(), config))),
    "bound to the chain": lambda config: rag_chain().with_config(config).invoke(QUESTION),
    "bound and given": lambda config: rag_chain().with_config(config).invoke(QUESTION, config),
    "bound and given to a stream": lambda config: list(rag_chain().with_config(config).stream(QUESTION, config)),
    "bound to every part as well": lambda config: list(
        rag_chain(retriever().with_config(config), chat_model().with_config(config)).stream(QUESTION, config)
    ),
    "twice in the list": lambda config: rag_chain().invoke(QUESTION, {"callbacks": config["callbacks"] * 2}),
    "in a manager": lambda config: rag_chain().invoke(QUESTION, {"callbacks": manager_of(config["callbacks"])}),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:astream_events version='v1'")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_chain_that_is_called_in_any_way(captured, call):
    call(captured.config)

    assert captured.answers() == [COMPLETE]


BATCHES = {
    "batch": lambda chain, *given: chain.batch(*given),
    "abatch": lambda chain, *given: asyncio.run(chain.abatch(*given)),
    "batch_as_completed": lambda chain, *given: dict(chain.batch_as_completed(*given)),
    "abatch_as_completed": lambda chain, *given: asyncio.run(read(chain.abatch_as_completed(*given))),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_each_question_of_a_batch_has_a_record(captured, batch):
    batch(rag_chain(TopicRetriever()), [wanted.question for wanted in TOPICAL], captured.config)

    assert captured.answers() == InAnyOrder(TOPICAL)


# Ways to attach the handler


def test_two_handlers_of_one_sink_see_one_request(captured, new_captures):
    other = new_captures(captured.sink)
    rag_chain().invoke(QUESTION, {"callbacks": [captured.handler, other.handler]})

    assert captured.answers() == [COMPLETE]


def test_documents_that_the_program_rewrites_in_place(captured):
    def rewrite(found):
        for document in found:
            document.page_content = document.page_content.replace("three years", "thirty-six months in all")
        return found

    rag_chain(retriever(PUMP, HOSE) | rewrite).invoke(QUESTION, captured.config)

    written = PUMP.replace("three years", "thirty-six months in all")
    assert captured.answers() == [Answered(QUESTION, [written, HOSE], ANSWER)]


# Run ids that the caller gives, as LangServe does on every request


@pytest.fixture(params=[uuid.uuid4, lambda: str(uuid.uuid4()), lambda: "request 17"], ids=["uuid", "text", "name"])
def config(captured, request):
    return captured.config | {"run_id": request.param()}


def test_callbacks_that_are_passed_again_inside_join_the_request_with_the_id(captured, config):
    program = retriever() | (lambda found: rag_chain().invoke(QUESTION, captured.config))
    program.invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE]


# Many at a time


def ask_in_threads(ask, _, questions):
    together = threading.Barrier(50)

    def wait_and_ask(question):
        together.wait(timeout=30)
        return ask(question)

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(wait_and_ask, questions))


def ask_in_tasks(_, ask, questions):
    async def ask_all():
        await asyncio.gather(*map(ask, questions))

    asyncio.run(ask_all())


@pytest.mark.parametrize("ask_all", [ask_in_threads, ask_in_tasks])
def test_fifty_requests_share_a_handler_and_are_not_mixed(captured, ask_all):
    program = rag_chain(TopicRetriever()).with_config(captured.config)
    questions = [f"{number}: {wanted.question}" for number, wanted in enumerate(TOPICAL * 17)][:50]
    ask_all(program.invoke, program.ainvoke, questions)

    assert captured.answers() == InAnyOrder(
        Answered(question, TOPICAL[number % 3].contexts, ANSWER) for number, question in enumerate(questions)
    )


@pytest.mark.parametrize("kind", [list, tuple])
def test_documents_of_a_class_of_the_programs_own_are_documents(captured, kind):
    found = kind([type("Page", (Document,), {})(page_content=PUMP)])
    rag_chain(FixedRetriever(result=found), formatter=str).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


# What goes with the record


def test_session_user_and_tags_come_from_the_configuration(captured):
    metadata = {"session_id": "s-1", "user_id": "u-2", "plan": "basic"}
    rag_chain().invoke(QUESTION, captured.config | {"metadata": metadata, "tags": ["beta"], "run_name": "manual"})

    record = captured.record()
    assert (record.session_id, record.user_id, record.name) == ("s-1", "u-2", "manual")
    assert "beta" in record.tags
    assert record.metadata["plan"] == "basic"
