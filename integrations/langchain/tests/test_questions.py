"""The question is the user's own words, however a program is called."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from agent_programs import (
    sequence,
    user_says,
)
from captures import Answered
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.types import Command
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    HOSE,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
)

CONTEXT = documents(PUMP)
TALK = [HumanMessage("Hello there!"), AIMessage("Good day."), HumanMessage(QUESTION)]


TWO_TEXTS = [{"type": "text", "text": "How long is the warranty "}, {"type": "text", "text": "on the pump?"}]


class Mood(str, Enum):
    ASKED = QUESTION


class Request(BaseModel):
    user_id: int
    question: str


@dataclass
class Ticket:
    number: int
    text: str


class Turn(BaseModel):
    messages: list[Any]


INPUTS = {
    "text": QUESTION,
    "question": {"question": QUESTION},
    "query": {"query": QUESTION, "k": 3},
    "input": {"input": QUESTION, "chat_history": [HumanMessage("Earlier words?")]},
    "user query": {"user_query": QUESTION, "language": "en"},
    "user input": {"language": "English", "userInput": QUESTION},
    "message": {"message": QUESTION},
    "prompt": {"prompt": QUESTION, "temperature": 0.5},
    "a name of its own": {"frage": QUESTION, "sprache": "de"},
    "request in a request": {"input": {"question": QUESTION}},
    "deep request": {"payload": {"request": {"question": QUESTION, "trace": "abc"}}},
    "other fields first": {"persona": "a plumber", "tone": "kind", "question": QUESTION},
    "documents beside it": {"context": CONTEXT, "question": QUESTION},
    "texts beside it": {"context": [PUMP], "question": QUESTION},
    "message list": TALK,
    "messages field": {"messages": TALK},
    "messages under another name": {"talk": TALK},
    "one message": HumanMessage(QUESTION),
    "a role of its own": [SystemMessage("Be kind."), ChatMessage(role="customer", content=QUESTION)],
    "a message as question": {"question": HumanMessage(QUESTION), "chat_history": TALK[:2]},
    "role dictionaries": {
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    },
    "role tuples": {"messages": [("system", "Be kind."), ("human", QUESTION)]},
    "system message last": {"messages": [HumanMessage(QUESTION), SystemMessage("Answer in one sentence.")]},
    "assistant message last": {"messages": [HumanMessage(QUESTION), AIMessage("Let me see.")]},
    "chat prompt": ChatPromptValue(messages=TALK),
    "text prompt": StringPromptValue(text=QUESTION),
    "pydantic model": Request(user_id=7, question=QUESTION),
    "dataclass": Ticket(number=7, text=QUESTION),
    "model of messages": Turn(messages=TALK),
    "enumeration": {"question": Mood.ASKED},
    "history of pairs": {"question": QUESTION, "chat_history": [("Hello?", "Good day.")]},
    "history as text": {"history": "Human: What is a pump?\nAI: A machine.", "question": QUESTION},
    "conversation id": {"conversation_id": "c-12", "text": QUESTION},
    "empty fields beside it": {"query": "", "question": QUESTION, "context": ""},
    "question and search words": {"question": QUESTION, "query_hint": "pump warranty"},
    "files beside it": {"files": ["manual.pdf"], "question": QUESTION},
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_question_in_this_form(captured, inputs, call):
    program = RunnableLambda(lambda _: rag_chain().invoke("search words of the program's own"))
    list(getattr(program, call)(inputs, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER)]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        [{"type": "image", "base64": "AAAA", "mime_type": "image/png"}, {"type": "text", "text": QUESTION}],
        [QUESTION, {"type": "file", "file": {"filename": "photo.pdf", "file_data": "AAAA"}}],
        TWO_TEXTS,
        [{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": HOSE}]}}, *TWO_TEXTS],
    ],
    ids=["image url", "image", "file", "two texts", "a document of texts"],
)
def test_the_text_of_a_question_with_pictures(captured, content):
    def rag(messages):
        context = join_texts(retriever().invoke(messages[-1].text))
        return chat_model().invoke([("system", f"Use: {context}"), *messages])

    RunnableLambda(rag).invoke([HumanMessage(content)], captured.config)

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, FOUND, ANSWER)
    assert record.prompts_seen is (content[-1] == {"type": "text", "text": "on the pump?"}), "a file was not read"


# What a graph is called with


ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


def answer_messages(state: MessagesState):
    found = TopicRetriever().invoke(state["messages"][-1].text)
    return {"messages": [chat_model().invoke([SystemMessage(join_texts(found)), *state["messages"]])]}


def test_a_command_that_brings_the_question(captured):
    graph = sequence(MessagesState, answer_messages, checkpointer=InMemorySaver())
    graph.invoke(user_says("The hose?"), captured.thread())
    captured.answers()
    graph.invoke(Command(update={"messages": [("user", QUESTION)]}, goto="answer_messages"), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]
