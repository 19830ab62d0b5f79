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
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_programs import (
    ANSWER,
    FILTER,
    FOUND,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    answer_chain,
    chat_model,
    join_texts,
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


def test_an_invoked_chain(captured):
    rag_chain().invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronously_invoked_chain(captured):
    await rag_chain().ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_streamed_chain_whose_input_comes_with_its_end(captured):
    list(rag_chain().stream(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronously_streamed_chain(captured):
    await read(rag_chain().astream(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


@pytest.mark.filterwarnings("ignore:astream_events version='v1'")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_chain_whose_events_are_streamed(captured, version):
    await read(rag_chain().astream_events(QUESTION, captured.config, version=version))

    assert captured.answers() == [COMPLETE]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_chain_whose_log_is_streamed(captured):
    await read(rag_chain().astream_log(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_a_chain_that_transforms_a_stream_of_input(captured):
    list(rag_chain().transform(iter(["How long is the ", "warranty on the pump?"]), captured.config))

    assert captured.answers() == [COMPLETE]


async def test_a_chain_that_transforms_an_asynchronous_stream_of_input(captured):
    async def words():
        yield "How long is the "
        yield "warranty on the pump?"

    await read(rag_chain().atransform(words(), captured.config))

    assert captured.answers() == [COMPLETE]


def test_each_question_of_a_batch_has_a_record(captured):
    rag_chain(TopicRetriever()).batch([wanted.question for wanted in TOPICAL], captured.config)

    assert captured.answers() == TOPICAL


async def test_each_question_of_an_asynchronous_batch_has_a_record(captured):
    await rag_chain(TopicRetriever()).abatch([wanted.question for wanted in TOPICAL], captured.config)

    assert captured.answers() == InAnyOrder(TOPICAL)


def test_a_batch_that_is_read_as_its_answers_are_ready(captured):
    dict(rag_chain(TopicRetriever()).batch_as_completed([wanted.question for wanted in TOPICAL], captured.config))

    assert captured.answers() == InAnyOrder(TOPICAL)


async def test_an_asynchronous_batch_that_is_read_as_its_answers_are_ready(captured):
    questions = [wanted.question for wanted in TOPICAL]
    await read(rag_chain(TopicRetriever()).abatch_as_completed(questions, captured.config))

    assert captured.answers() == InAnyOrder(TOPICAL)


def test_a_batch_with_a_question_that_fails(captured):
    def refuse_hoses(question):
        if "hose" in question:
            raise PermissionError(question)
        return question

    program = RunnableLambda(refuse_hoses) | rag_chain(TopicRetriever())
    program.batch([wanted.question for wanted in TOPICAL], captured.config, return_exceptions=True)

    pump, hose, others = TOPICAL
    assert captured.answers() == [pump, Answered(hose.question, [], None, "error", "PermissionError"), others]


def test_two_streams_that_one_thread_reads_in_turns(captured):
    questions = [wanted.question for wanted in TOPICAL[:2]]
    streams = [rag_chain(TopicRetriever()).stream(question, captured.config) for question in questions]
    for _ in zip(*streams, strict=True):
        pass
    for rest in streams:
        list(rest)

    assert captured.answers() == TOPICAL[:2]


def test_a_stream_that_another_thread_goes_on_to_read(captured):
    stream = rag_chain().stream(QUESTION, captured.config)
    next(stream)
    reader = threading.Thread(target=list, args=(stream,))
    reader.start()
    reader.join()

    assert captured.answers() == [COMPLETE]


async def test_a_stream_that_is_made_in_one_task_and_read_in_another(captured):
    async def make():
        return rag_chain().astream(QUESTION, captured.config)

    await asyncio.create_task(read(await asyncio.create_task(make())))

    assert captured.answers() == [COMPLETE]


def test_a_run_id_of_the_callers_own_that_is_used_twice(captured):
    run_id = uuid.uuid4()
    for wanted in TOPICAL[:2]:
        rag_chain(TopicRetriever()).invoke(wanted.question, captured.config | {"run_id": run_id})

    assert captured.answers() == TOPICAL[:2]


def test_a_chain_that_is_mapped_over_a_list_is_one_request(captured):
    """The contract does not say which of the questions is the question of the one record."""
    rag_chain(TopicRetriever()).map().invoke([wanted.question for wanted in TOPICAL], captured.config)

    answer = captured.answer()
    assert set(answer.contexts) == {PUMP, HOSE, FILTER, MOTOR}
    assert answer.status == "complete"


# Ways to attach the handler


def test_a_handler_that_is_bound_to_the_chain(captured):
    rag_chain().with_config(callbacks=[captured.handler]).invoke(QUESTION)

    assert captured.answers() == [COMPLETE]


def test_a_handler_that_is_bound_to_the_chain_and_given_with_the_call(captured):
    rag_chain().with_config(captured.config).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_streamed_chain_with_the_handler_bound_and_given(captured):
    list(rag_chain().with_config(captured.config).stream(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_a_handler_that_is_bound_to_every_part_as_well(captured):
    source = retriever().with_config(captured.config)
    model = chat_model().with_config(captured.config)
    list(rag_chain(source, model).stream(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_a_handler_that_stands_twice_in_the_list(captured):
    rag_chain().invoke(QUESTION, {"callbacks": [captured.handler, captured.handler]})

    assert captured.answers() == [COMPLETE]


def test_a_callback_manager_instead_of_a_list(captured):
    manager = CallbackManager(handlers=[])
    manager.add_handler(captured.handler, inherit=True)
    rag_chain().invoke(QUESTION, {"callbacks": manager})

    assert captured.answers() == [COMPLETE]


def test_two_handlers_of_one_sink_see_one_request(captured, new_captures):
    other = new_captures(captured.sink)
    rag_chain().invoke(QUESTION, {"callbacks": [captured.handler, other.handler]})

    assert captured.answers() == [COMPLETE]


def test_handlers_of_different_sinks_see_a_request_each(captured, new_captures):
    other = new_captures()
    rag_chain().invoke(QUESTION, {"callbacks": [captured.handler, other.handler]})

    assert captured.answers() == [COMPLETE]
    assert other.answers() == [COMPLETE]


def test_a_handler_for_each_request(captured, new_captures):
    for wanted in TOPICAL:
        rag_chain(TopicRetriever()).invoke(wanted.question, new_captures(captured.sink).config)

    assert captured.answers() == TOPICAL


def test_an_inner_call_with_another_handler_of_the_same_sink_is_no_second_request(captured, new_captures):
    inner = new_captures(captured.sink)
    program = RunnableLambda(lambda question: rag_chain().invoke(question, inner.config))
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


# Many at a time


def test_fifty_threads_share_a_handler_and_are_not_mixed(captured):
    program = rag_chain(TopicRetriever())
    questions = [f"{number}: {wanted.question}" for number, wanted in enumerate(TOPICAL * 17)][:50]
    together = threading.Barrier(50)

    def ask(question):
        together.wait(timeout=30)
        return program.invoke(question, captured.config)

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(ask, questions))

    assert captured.answers() == InAnyOrder(
        Answered(question, TOPICAL[number % 3].contexts, ANSWER) for number, question in enumerate(questions)
    )


async def test_fifty_tasks_share_a_handler_and_are_not_mixed(captured):
    program = rag_chain(TopicRetriever())
    questions = [f"{number}: {wanted.question}" for number, wanted in enumerate(TOPICAL * 17)][:50]
    await asyncio.gather(*(program.ainvoke(question, captured.config) for question in questions))

    assert captured.answers() == InAnyOrder(
        Answered(question, TOPICAL[number % 3].contexts, ANSWER) for number, question in enumerate(questions)
    )


# What goes with the record


def test_session_user_and_tags_come_from_the_configuration(captured):
    metadata = {"session_id": "s-1", "user_id": "u-2", "plan": "basic"}
    rag_chain().invoke(QUESTION, captured.config | {"metadata": metadata, "tags": ["beta"], "run_name": "manual"})

    record = captured.record()
    assert (record.session_id, record.user_id, record.name) == ("s-1", "u-2", "manual")
    assert "beta" in record.tags
    assert record.metadata["plan"] == "basic"


def test_the_steps_of_an_answer_are_kept_beside_it(captured):
    documents = [
        Document(page_content=text, id=f"id-{i}", metadata={"source": "manual.pdf"}) for i, text in enumerate(FOUND)
    ]
    source = RunnablePassthrough() | retriever()
    rag_chain(source, chat_model(), lambda found: join_texts(reversed(found))).invoke(QUESTION, captured.config)

    record = captured.record()
    (retrieval,) = record.retrievals
    (generation,) = record.generations
    assert retrieval.query == QUESTION
    assert [context.text for context in retrieval.contexts] == [document.page_content for document in documents]
    assert [(context.text, context.rank) for context in record.contexts] == [(MOTOR, 2), (FILTER, 1), (PUMP, 0)]
    assert record.started_ns <= retrieval.started_ns <= retrieval.ended_ns <= generation.started_ns
    assert generation.started_ns <= generation.ended_ns <= record.ended_ns


def test_an_answer_without_a_retriever_is_recorded_with_unknown_contexts(captured):
    answer_chain().invoke({"context": "Something.", "question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_bare_search_is_no_answer(captured):
    retriever().invoke(QUESTION, captured.config)

    assert captured.answers() == []
