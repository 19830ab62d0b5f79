"""What a prompt template gave out is read once, with the prompt of the model that is given it, and never lost."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableParallel

from ragspan.capturing.log import RequestLog
from ragspan.request.contents import FilledPrompt
from ragspan.request.events import ModelStart
from ragspan_langchain import RagspanCallbackHandler

CHAT = ChatPromptTemplate.from_messages([("system", "Be {manner}."), ("human", "{question}")])
TEXT = PromptTemplate.from_template("Be {manner}. {question}")
ASKED = {"manner": "short", "question": "When are payments settled?"}
PARTS = ["Be short.", "When are payments settled?"]


class Logs:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.all: list[RequestLog] = []

    def submit(self, capture):
        self.all.append(capture)


def model():
    return GenericFakeChatModel(messages=itertools.repeat(AIMessage("Every night.")))


def prompts_of(program, given=ASKED):
    """What templates gave out and what models got, in one request."""
    logs = Logs()
    program.invoke(given, config={"callbacks": [RagspanCallbackHandler(sink=logs)]})
    (log,) = logs.all
    filled = [event.payload for event in log.history if isinstance(event.payload, FilledPrompt)]
    return filled, [event.payload for event in log.history if isinstance(event.about, ModelStart)]


def texts(messages):
    return [message.text for message in messages]


def test_the_messages_that_a_model_is_given_are_read_once():
    (filled,), (given,) = prompts_of(CHAT | model())
    assert texts(filled.messages) == PARTS
    assert filled.messages is given


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda prompt: [*prompt.to_messages(), HumanMessage("Now.")], [*PARTS, "Now."]),
        (lambda prompt: prompt.to_messages()[1:], PARTS[1:]),
        (lambda prompt: [message.model_copy() for message in prompt.to_messages()], PARTS),
    ],
    ids=["one more", "one less", "copies"],
)
def test_a_model_that_is_given_other_messages_leaves_the_template_its_own(change, told):
    (filled, *_), (given,) = prompts_of(CHAT | change | model())
    assert texts(filled.messages) == PARTS
    assert texts(given) == told


def test_a_template_that_no_model_follows_is_read_when_the_request_ends():
    (filled,), _ = prompts_of(CHAT | (lambda prompt: "Every night."))
    assert texts(filled.messages) == PARTS
    assert not filled.given


def test_a_template_that_gives_out_one_text():
    (filled,), (given,) = prompts_of(TEXT | model())
    assert texts(filled.messages) == texts(given) == [" ".join(PARTS)]


def test_templates_side_by_side_are_told_apart():
    other = ChatPromptTemplate.from_template("Say: {question}")
    filled, given = prompts_of(RunnableParallel(short=CHAT | model(), other=other | model()))
    shown = sorted([PARTS, ["Say: " + PARTS[1]]])
    assert sorted(texts(each.messages) for each in filled) == shown
    assert sorted(map(texts, given)) == shown
