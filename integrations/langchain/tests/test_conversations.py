"""Programs that remember a conversation, and the older kinds of agents."""

from __future__ import annotations

import pytest
from agent_programs import calls, scripted_model, search, search_tool, user_says
from captures import Answered
from langchain_classic.chains import ConversationalRetrievalChain, LLMChain
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListLLM
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import create_retriever_tool, tool
from langgraph.prebuilt import create_react_agent as create_graph_agent
from rag_programs import (
    ANSWER,
    CHAT_PROMPT,
    HOSE,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    join_texts,
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


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_chain_with_a_message_history(captured, call):
    program = chatting_chain()
    for question in (QUESTION, "And the hose?"):
        config = captured.config | {"configurable": {"session_id": "s-1"}}
        list(getattr(program, call)({"input": question}, config))

    assert captured.answers() == [ON_THE_PUMP, AND_THE_HOSE]


async def test_a_chain_with_a_message_history_in_asynchronous_code(captured):
    program = chatting_chain()
    for question in (QUESTION, "And the hose?"):
        config = captured.config | {"configurable": {"session_id": "s-1"}}
        await program.ainvoke({"input": question}, config)

    assert captured.answers() == [ON_THE_PUMP, AND_THE_HOSE]


def test_a_chain_with_a_memory_of_its_own(captured):
    memory = ConversationBufferMemory(memory_key="chat_history", return_messages=True)
    program = ConversationalRetrievalChain.from_llm(
        chat_model(ANSWER, "How does the hose fit?", "From Lyon."), retriever=TopicRetriever(), memory=memory
    )
    program.invoke({"question": QUESTION}, captured.config)
    program.invoke({"question": "and that one?"}, captured.config)

    assert captured.answers() == [ON_THE_PUMP, Answered("and that one?", [HOSE], "From Lyon.")]


def test_a_plain_chain_of_prompt_and_model(captured):
    program = LLMChain(llm=FakeListLLM(responses=[ANSWER]), prompt=PromptTemplate.from_template("{question}"))
    program.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# Executors


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_executor_that_calls_tools(captured, call):
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent

    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), MessagesPlaceholder("agent_scratchpad")])
    agent = create_tool_calling_agent(scripted_model(calls(search("pump")), ANSWER), [search_tool()], prompt)
    executor = AgentExecutor(agent=agent, tools=[search_tool()])
    list(getattr(executor, call)({"input": QUESTION}, captured.config))

    assert captured.answers() == [ON_THE_PUMP]


def test_an_executor_that_writes_its_thoughts(captured):
    """The model asks for a tool in plain text, and reads the result in the next prompt."""
    from langchain_classic.agents import AgentExecutor, create_react_agent

    prompt = PromptTemplate.from_template("{tools} {tool_names}\nQuestion: {input}\n{agent_scratchpad}")
    model = FakeListLLM(
        responses=[
            "Thought: I must search.\nAction: search_manual\nAction Input: the pump",
            f"Thought: I know now.\nFinal Answer: {ANSWER}",
        ]
    )
    tools = [create_retriever_tool(TopicRetriever(), "search_manual", "Search the manual.")]
    executor = AgentExecutor(agent=create_react_agent(model, tools, prompt), tools=tools)
    executor.invoke({"input": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_the_ready_made_graph_of_an_agent(captured):
    agent = create_graph_agent(scripted_model(calls(search("pump")), ANSWER), [search_tool()])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Tools that are called by the program itself


def test_a_tool_that_answers_is_a_request(captured):
    @tool
    def ask_manual(question: str) -> str:
        """Ask the manual."""
        return rag_chain(TopicRetriever()).invoke(question)

    ask_manual.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]
