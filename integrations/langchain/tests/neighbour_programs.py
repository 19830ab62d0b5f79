"""Programs that other people's handlers hear of: each is called with callbacks, and returns what its caller gets."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_programs import calls, rag_graph, search, search_agent, user_says
from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.callbacks.manager import atrace_as_chain_group
from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.fake import FakeStreamingListLLM
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_programs import ANSWER, QUESTION, BrokenModel, FailingRetriever, chat_model, look_up, rag_chain, retriever


def llm():
    return FakeListLLM(responses=[ANSWER])


def streaming_llm():
    return FakeStreamingListLLM(responses=[ANSWER])


class TokenByToken(FakeListLLM):
    """Reports tokens while it is called, as `AsyncIteratorCallbackHandler` is made for."""

    async def _acall(self, prompt, stop=None, run_manager=None, **kwargs):
        for word in ANSWER.split():
            await run_manager.on_llm_new_token(word)
        return ANSWER


class FailingLlm(FakeListLLM):
    async def _acall(self, *_, **__):
        raise RuntimeError("internal server error")


async def read(stream):
    return [piece async for piece in stream]


async def log_of(stream):
    return [operation for patch in await read(stream) for operation in patch.ops]


def failing(call):
    """What a call that fails raises."""
    try:
        call()
    except (RuntimeError, ConnectionError) as error:
        return repr(error)
    raise AssertionError("it did not fail")


def ask_a_person(state):
    return {"context": look_up(interrupt("which pump?"))}


def interrupted_graph(config):
    graph = rag_graph(ask_a_person, checkpointer=InMemorySaver())
    config = {**config, "configurable": {"thread_id": "conversation"}}
    first = graph.invoke({"question": QUESTION}, config)
    return [list(first), graph.invoke(Command(resume=QUESTION), config)]


def agent():
    return search_agent(calls(search("pump")), ANSWER)


async def group_of_calls(config):
    async with atrace_as_chain_group("group", inputs={"question": QUESTION}) as group:
        for handler in config["callbacks"]:
            group.add_handler(handler)
        return [
            await llm().ainvoke(QUESTION, {"callbacks": group}),
            await rag_chain().ainvoke(QUESTION, {"callbacks": group}),
        ]


def telling(question, config):
    dispatch_custom_event("told", question, config=config)
    return question


async def telling_asynchronously(question, config):
    await adispatch_custom_event("told", question, config=config)
    return question


IN_ORDER = {
    "llm invoke": lambda config: llm().invoke(QUESTION, config),
    "llm ainvoke": lambda config: asyncio.run(llm().ainvoke(QUESTION, config)),
    "llm stream": lambda config: list(streaming_llm().stream(QUESTION, config)),
    "llm astream": lambda config: asyncio.run(read(streaming_llm().astream(QUESTION, config))),
    "llm ainvoke, token by token": lambda config: asyncio.run(
        TokenByToken(responses=[ANSWER]).ainvoke(QUESTION, config)
    ),
    "llm ainvoke that fails": lambda config: failing(
        lambda: asyncio.run(FailingLlm(responses=[ANSWER]).ainvoke(QUESTION, config))
    ),
    "llm generate": lambda config: llm().generate(["one", "two"], **config),
    "llm astream_events v1": lambda config: asyncio.run(read(llm().astream_events(QUESTION, config, version="v1"))),
    "llm astream_events v2": lambda config: asyncio.run(read(llm().astream_events(QUESTION, config, version="v2"))),
    "llm astream_log": lambda config: asyncio.run(log_of(llm().astream_log(QUESTION, config))),
    "chat invoke": lambda config: chat_model().invoke(QUESTION, config),
    "chat ainvoke": lambda config: asyncio.run(chat_model().ainvoke(QUESTION, config)),
    "chat stream": lambda config: list(chat_model().stream(QUESTION, config)),
    "chat astream": lambda config: asyncio.run(read(chat_model().astream(QUESTION, config))),
    "chat astream_events v2": lambda config: asyncio.run(
        read(chat_model().astream_events(QUESTION, config, version="v2"))
    ),
    "chat that fails": lambda config: failing(lambda: BrokenModel().invoke(QUESTION, config)),
    "retriever ainvoke": lambda config: asyncio.run(retriever().ainvoke(QUESTION, config)),
    "custom event": lambda config: RunnableLambda(telling).invoke(QUESTION, config),
    "custom event, async": lambda config: asyncio.run(RunnableLambda(telling_asynchronously).ainvoke(QUESTION, config)),
    "agent invoke": lambda config: agent().invoke(user_says(QUESTION), config),
    "agent ainvoke": lambda config: asyncio.run(agent().ainvoke(user_says(QUESTION), config)),
    "agent stream of messages": lambda config: list(
        agent().stream(user_says(QUESTION), config, stream_mode="messages")
    ),
    "agent astream of messages": lambda config: asyncio.run(
        read(agent().astream(user_says(QUESTION), config, stream_mode=["messages", "updates"]))
    ),
    "agent astream_events v2": lambda config: asyncio.run(
        read(agent().astream_events(user_says(QUESTION), config, version="v2"))
    ),
    "graph invoke": lambda config: rag_graph().invoke({"question": QUESTION}, config),
    "graph ainvoke": lambda config: asyncio.run(rag_graph().ainvoke({"question": QUESTION}, config)),
    "graph that waits": interrupted_graph,
}
"""What happens one after the other."""

AT_ONCE = {
    "group of calls": lambda config: asyncio.run(group_of_calls(config)),
    "chain whose search fails": lambda config: failing(lambda: rag_chain(FailingRetriever()).invoke(QUESTION, config)),
    "llm agenerate": lambda config: asyncio.run(llm().agenerate(["one", "two"], **config)),
    "llm abatch": lambda config: asyncio.run(llm().abatch(["one", "two"], config)),
    "llm batch": lambda config: llm().batch(["one", "two"], config),
    "chat abatch": lambda config: asyncio.run(chat_model().abatch(["one", "two"], config)),
    "chain invoke": lambda config: rag_chain().invoke(QUESTION, config),
    "chain ainvoke": lambda config: asyncio.run(rag_chain().ainvoke(QUESTION, config)),
    "chain ainvoke with an llm": lambda config: asyncio.run(rag_chain(model=llm()).ainvoke(QUESTION, config)),
    "chain astream with an llm": lambda config: asyncio.run(
        read(rag_chain(model=streaming_llm()).astream(QUESTION, config))
    ),
    "chain astream_events v1": lambda config: asyncio.run(
        read(rag_chain(model=llm()).astream_events(QUESTION, config, version="v1"))
    ),
    "chain astream_events v2": lambda config: asyncio.run(
        read(rag_chain(model=llm()).astream_events(QUESTION, config, version="v2"))
    ),
    "chain astream_log": lambda config: asyncio.run(log_of(rag_chain(model=llm()).astream_log(QUESTION, config))),
    "two tools": lambda config: asyncio.run(
        search_agent(calls(search("pump"), search("hose")), ANSWER).ainvoke(user_says(QUESTION), config)
    ),
}
"""In which some of it happens at the same time, in any order."""

PROGRAMS: dict[str, Any] = IN_ORDER | AT_ONCE
