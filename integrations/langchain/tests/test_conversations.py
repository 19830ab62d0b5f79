"""Programs that remember a conversation, and the older kinds of agents."""

from __future__ import annotations

import pytest
from agent_programs import scripted_model, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from rag_programs import (
    ANSWER,
    CHAT_PROMPT,
    HOSE,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    config_reaches_async_functions,
    join_texts,
    look_up,
    rag_chain,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)
AND_THE_HOSE = Answered("And the hose?", [HOSE], ANSWER)


def chatting_chain():
    """A chain whose history LangChain keeps for each session."""
    histories = {}
    find = (lambda fields: fields["input"]) | TopicRetriever() | join_texts
    return RunnableWithMessageHistory(
        RunnablePassthrough.assign(context=find) | CHAT_PROMPT | chat_model(),
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="input",
        history_messages_key="chat_history",
    )


@pytest.mark.parametrize("call", ["invoke", "stream", "ainvoke"])
async def test_a_chain_with_a_message_history(captured, call):
    program = chatting_chain()
    for question in (QUESTION, "And the hose?"):
        config = captured.config | {"configurable": {"session_id": "s-1"}}
        called = getattr(program, call)({"input": question}, config)
        await called if call == "ainvoke" else list(called)

    assert captured.answers() == [ON_THE_PUMP, AND_THE_HOSE]


# Tools that are called by the program itself


def test_a_tool_that_answers_is_a_request(captured):
    @tool
    def ask_manual(question: str) -> str:
        """Ask the manual."""
        return rag_chain(TopicRetriever()).invoke(question)

    ask_manual.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Documents of earlier turns that stand in the prompt as history do not count


TURNS = (QUESTION, "And the hose?")
EACH_ITS_OWN = [Answered(QUESTION, [PUMP], ANSWER), Answered("And the hose?", [HOSE], "From Lyon.")]


def augmented(message, found):
    return message.model_copy(update={"content": f"{message.text}\n\nUse:\n{join_texts(found)}"})


class FoundState(AgentState):
    found: list[Document]


class Retrieve(AgentMiddleware[FoundState]):
    """Writes what it finds into the user's message and into the state, as the documentation's RAG agent does."""

    state_schema = FoundState

    def __init__(self, search):
        self._search = search

    def before_model(self, state, runtime=None):
        last = state["messages"][-1]
        found = self._search(last.text)
        return {"messages": [augmented(last, found)], "found": found}

    async def abefore_model(self, state, runtime=None):
        return self.before_model(state)


def augmenting_agent(search, **options):
    return create_agent(scripted_model(ANSWER, "From Lyon."), [], middleware=[Retrieve(search)], **options)


@pytest.mark.parametrize("search", [look_up, TopicRetriever().invoke], ids=["store", "retriever"])
@pytest.mark.parametrize("call", ["invoke", "stream", pytest.param("ainvoke", marks=config_reaches_async_functions)])
async def test_a_message_that_was_augmented_in_an_earlier_turn(captured, search, call):
    agent = augmenting_agent(search, checkpointer=InMemorySaver())
    for question in TURNS:
        called = getattr(agent, call)(user_says(question), captured.thread())
        await called if call == "ainvoke" else list(called)

    assert captured.answers() == EACH_ITS_OWN
