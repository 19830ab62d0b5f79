"""Plain functions in chains, and how runs find the request that they belong to."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import langsmith
import pytest
from captures import Answered
from langchain_core.runnables import (
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
    RunnableSequence,
    chain,
)
from langchain_core.runnables.config import ContextThreadPoolExecutor
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
    config_reaches_async_functions,
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


def test_a_function_that_calls_retriever_and_model(captured):
    @chain
    def rag(question):
        return answer_from(retriever().invoke(question), question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


@config_reaches_async_functions
async def test_an_asynchronous_function_that_calls_retriever_and_model(captured):
    @chain
    async def rag(question):
        found = await retriever().ainvoke(question)
        return await answer_chain().ainvoke({"context": join_texts(found), "question": question})

    await rag.ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronous_function_that_passes_the_configuration_on(captured):
    @chain
    async def rag(question, config):
        found = await retriever().ainvoke(question, config)
        return await answer_chain().ainvoke({"context": join_texts(found), "question": question}, config)

    await rag.ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


@config_reaches_async_functions
async def test_searches_that_run_at_the_same_time(captured):
    @chain
    async def rag(question):
        found = await asyncio.gather(*(TopicRetriever().ainvoke(topic) for topic in ("motor", "pump")))
        return answer_from([document for each in found for document in each], question)

    await rag.ainvoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP], ANSWER)]


@config_reaches_async_functions
async def test_a_search_that_a_worker_thread_makes(captured):
    @chain
    async def rag(question):
        return answer_from(await asyncio.to_thread(retriever().invoke, question), question)

    await rag.ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_searches_in_a_pool_that_hands_the_context_on(captured):
    @chain
    def rag(question):
        with ContextThreadPoolExecutor() as pool:
            found = list(pool.map(TopicRetriever().invoke, ["motor", "pump"]))
        return answer_from([document for each in found for document in each], question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP], ANSWER)]


def test_a_search_in_a_plain_pool_is_not_observable(captured):
    @chain
    def rag(question):
        with ThreadPoolExecutor(1) as pool:
            return answer_from(pool.submit(retriever().invoke, question).result(), question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_store_that_is_searched_inside_a_function_is_not_observable(captured):
    @chain
    def rag(question):
        return answer_from(look_up(question), question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_step_that_searches_the_store_shows_its_result(captured):
    rag_chain(RunnableLambda(look_up)).invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_step_that_finds_nothing_shows_an_empty_result(captured):
    rag_chain(RunnableLambda(look_up)).invoke("What of the weather?", captured.config)

    assert captured.answers() == [Answered("What of the weather?", [], ANSWER)]


def test_a_step_that_returns_documents_with_scores(captured):
    def with_scores(question):
        return [(document, 0.25) for document in look_up(question)]

    program = rag_chain(RunnableLambda(with_scores), formatter=lambda pairs: join_texts(found for found, _ in pairs))
    program.invoke(QUESTION, captured.config)

    record = captured.record()
    assert Answered.of(record) == ON_THE_PUMP
    assert [context.score for context in record.contexts] == [0.25]


def test_documents_that_a_threshold_drops(captured):
    def with_scores(question):
        return list(zip(documents(PUMP, HOSE), [0.9, 0.1], strict=True))

    source = RunnableLambda(with_scores) | (lambda pairs: [found for found, score in pairs if score > 0.5])
    rag_chain(source).invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_passages_of_a_class_of_the_programs_own_are_not_observable(captured):
    class Passage:
        text = PUMP

    program = rag_chain(RunnableLambda(lambda question: [Passage()]), formatter=lambda found: found[0].text)
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_step_that_returns_documents_by_topic(captured):
    def by_topic(question):
        return {"service": documents(HOSE), "warranty": look_up(question)}

    def show(found):
        return join_texts([*found["warranty"], *found["service"]])

    rag_chain(RunnableLambda(by_topic), formatter=show).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


# Functions that stream


def test_a_generator_function_that_streams_the_answer(captured):
    def rag(questions):
        question = "".join(questions)
        yield from answer_chain().stream({"context": join_texts(retriever().invoke(question)), "question": question})

    program = RunnableGenerator(rag)
    assert "".join(program.stream(QUESTION, captured.config)) == ANSWER
    assert captured.answers() == [COMPLETE]


async def test_an_asynchronous_generator_function_that_streams_the_answer(captured):
    async def rag(questions, config):
        question = "".join([part async for part in questions])
        found = await retriever().ainvoke(question, config)
        async for text in answer_chain().astream({"context": join_texts(found), "question": question}, config):
            yield text

    assert "".join([text async for text in RunnableGenerator(rag).astream(QUESTION, captured.config)]) == ANSWER
    assert captured.answers() == [COMPLETE]


def test_a_function_that_returns_a_chain(captured):
    program = RunnableLambda(lambda question: rag_chain() if "warranty" in question else chat_model())
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_streamed_function_that_returns_a_chain(captured):
    program = RunnableLambda(lambda question: rag_chain())
    list(program.stream(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_a_generator_step_that_rewrites_the_words_of_the_stream(captured):
    """What the reader gets counts, not what the model said."""

    def shout(texts):
        for text in texts:
            yield text.upper()

    program = rag_chain() | shout
    assert "".join(program.stream(QUESTION, captured.config)) == ANSWER.upper()
    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER.upper())]


# Branches


def test_a_branch_without_search_and_without_model(captured):
    small_talk = RunnableLambda(lambda question: "Hello!")
    program = RunnableBranch((lambda question: question == "hi", small_talk), rag_chain())
    program.invoke("hi", captured.config)
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered("hi", [], "Hello!"), COMPLETE]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_router_that_classifies_the_question_first(captured, call):
    """The classifying model's word is not the answer, and its prompt holds no document."""
    routes = {"manual": rag_chain(), "chat": chat_model("Let us talk.")}
    program = RunnablePassthrough.assign(
        route=lambda fields: chat_model("manual").invoke(f"Classify: {fields['question']}").text
    ) | RunnableLambda(lambda fields: routes[fields["route"]].invoke(fields["question"]))
    list(getattr(program, call)({"question": QUESTION}, captured.config))

    assert captured.answers() == [COMPLETE]


# One request, one record


def test_callbacks_that_are_passed_again_to_inner_calls(captured):
    @chain
    def rag(question):
        found = retriever().invoke(question, captured.config)
        return chat_model().invoke(f"{join_texts(found)}\n\n{question}", captured.config).text

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


async def test_callbacks_that_are_passed_again_to_inner_asynchronous_calls(captured):
    async def find(question):
        return await retriever().ainvoke(question, captured.config)

    async def answer(fields):
        return await answer_chain().ainvoke(fields, captured.config)

    program = {"context": RunnableLambda(find) | join_texts, "question": RunnablePassthrough()} | RunnableLambda(answer)
    await program.ainvoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_chain_inside_a_chain_inside_a_chain(captured):
    inner = RunnableLambda(lambda question: rag_chain().invoke(question, captured.config))
    outer = RunnableLambda(lambda question: inner.invoke(question))
    outer.with_config(captured.config).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_parent_from_another_tracer(captured, langsmith_tracing):
    @langsmith.traceable
    def endpoint(question):
        return rag_chain().invoke(question, captured.config)

    endpoint(QUESTION)

    assert captured.answers() == [COMPLETE]


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


def test_two_requests_under_one_function_of_another_tracer(captured, langsmith_tracing):
    @langsmith.traceable
    def endpoint(questions):
        return [rag_chain(TopicRetriever()).invoke(question, captured.config) for question in questions]

    endpoint([QUESTION, "And the filter?"])

    assert captured.answers() == [ON_THE_PUMP, Answered("And the filter?", [FILTER], ANSWER)]


def test_what_a_program_does_in_the_background_after_the_answer(captured):
    answered = threading.Event()
    threads = []

    def answer_and_go_on(question):
        answer = rag_chain().invoke(question)
        context = contextvars.copy_context()

        def later():
            answered.wait(10)
            context.run(rag_chain().invoke, "Write a title.")

        threads.append(threading.Thread(target=later))
        threads[0].start()
        return answer

    RunnableLambda(answer_and_go_on).invoke(QUESTION, captured.config)
    answered.set()
    threads[0].join()

    assert captured.answers() == [COMPLETE]


def test_a_sequence_that_is_built_by_hand(captured):
    program = RunnableSequence(
        RunnablePassthrough.assign(found=lambda fields: retriever().invoke(fields["question"])),
        RunnablePassthrough.assign(context=lambda fields: join_texts(fields["found"])),
        answer_chain(),
    )
    program.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [COMPLETE]
