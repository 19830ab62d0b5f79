"""The response is what the caller got; `tests/runs` has which of many things that is."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from typing import Annotated, TypedDict

import pytest
from agent_programs import calls, scripted_model, sequence, user_says
from captures import Answered
from langchain_core.language_models import FakeListLLM, FakeStreamingListLLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnablePassthrough
from langgraph.graph import MessagesState
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    PROMPT,
    PUMP,
    QUESTION,
    StreamingModel,
    TopicRetriever,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
PREPARED = {"context": retriever() | join_texts, "question": RunnablePassthrough()}


class Warranty(BaseModel):
    years: int
    reason: str


@dataclass
class Reply:
    text: str
    pages: list[int]


STRUCTURED = {"years": 3, "reason": "It says so on page one."}


def structured_answer(captured):
    """The answer to `QUESTION` from the three documents, read as JSON."""
    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "complete")
    return json.loads(answer.response)


# In which form


@pytest.mark.parametrize("model", [FakeListLLM(responses=[ANSWER]), FakeStreamingListLLM(responses=[ANSWER])])
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_completion_of_a_plain_language_model(captured, model, call):
    list(getattr(PREPARED | PROMPT | model, call)(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


CITED = {"type": "text", "text": "three years.", "annotations": [{"type": "citation", "cited_text": "three years"}]}


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "thinking", "thinking": "Three or four?"}, {"type": "text", "text": ANSWER}],
        [{"type": "reasoning", "reasoning": "Three or four?"}, {"type": "text", "text": "It runs for "}, CITED],
    ],
    ids=["thinking", "reasoning"],
)
def test_thoughts_are_not_a_part_of_the_answer(captured, blocks):
    (PREPARED | PROMPT | chat_model(AIMessage(blocks))).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def says_it_by_a_tool_call(schema, **options):
    model = scripted_model(calls(("Warranty", STRUCTURED))).with_structured_output(schema, **options)
    return PREPARED | PROMPT | model


SAYS_JSON = PREPARED | PROMPT | chat_model(json.dumps(STRUCTURED))
OBJECTS = {
    "parsed JSON": lambda: (SAYS_JSON | JsonOutputParser(), STRUCTURED),
    "parsed model": lambda: (SAYS_JSON | PydanticOutputParser(pydantic_object=Warranty), STRUCTURED),
    "tool call": lambda: (says_it_by_a_tool_call(Warranty), STRUCTURED),
    "tool call by a schema": lambda: (says_it_by_a_tool_call(Warranty.model_json_schema()), STRUCTURED),
    "message that calls a tool": lambda: (
        PREPARED | PROMPT | scripted_model(calls(("Warranty", STRUCTURED))),
        STRUCTURED,
    ),
    "dataclass": lambda: (rag_chain() | (lambda text: Reply(text=text, pages=[1])), {"text": ANSWER, "pages": [1]}),
    "number": lambda: (rag_chain() | (lambda text: 3), 3),
}


@pytest.mark.parametrize("made", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_answer_that_is_an_object(captured, made, call):
    program, expected = made()
    answered = getattr(program, call)(QUESTION, captured.config)
    if call == "stream":
        list(answered)

    assert structured_answer(captured) == expected


def test_structured_output_with_the_raw_message(captured):
    says_it_by_a_tool_call(Warranty, include_raw=True).invoke(QUESTION, captured.config)

    assert structured_answer(captured)["parsed"] == STRUCTURED


def test_what_is_too_large_says_that_something_is_missing(captured):
    rows = [{"row": [number]} for number in range(5000)]
    (rag_chain() | (lambda text: {"answer": rows})).invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert "…" in json.loads(answer.response)
    assert len(answer.response) < 20_000


# In which field


class PlanState(TypedDict, total=False):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple[str, str]], operator.add]
    response: str


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_plan_whose_steps_stay_in_the_state(captured, call):
    """Its fields are those that each node's update adds to the state."""
    say = scripted_model("Find the manual.\nRead it.", "The step found three years.", calls(("Warranty", STRUCTURED)))

    def plan(state: PlanState):
        return {"plan": say.invoke("Plan.").text.split("\n")}

    def step(state: PlanState):
        return {"past_steps": [(state["plan"][0], say.invoke(join_texts(TopicRetriever().invoke("pump"))).text)]}

    def replan(state: PlanState):
        return {"response": say.with_structured_output(Warranty).invoke(f"{state['past_steps']}").reason}

    list(getattr(sequence(PlanState, plan, step, replan), call)({"input": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, [PUMP], STRUCTURED["reason"])]


def test_a_conversation_that_ends_with_a_models_words_under_the_role_of_a_person(captured):
    def work(state: MessagesState):
        found = join_texts(TopicRetriever().invoke("pump"))
        return {"messages": [HumanMessage(chat_model().invoke(found).text, name="researcher")]}

    sequence(MessagesState, work).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_a_streamed_step_that_waits_for_the_whole_answer(captured):
    def correct(texts):
        yield "".join(texts).replace("three", "3")

    list((rag_chain() | correct).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, "It runs for 3 years.")]


# How models give their answers


def test_a_model_that_streams_although_it_is_invoked(captured):
    """Some models send tokens to the callbacks even then; the caller still gets the whole."""

    class EagerModel(StreamingModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            text = "".join(chunk.text for chunk in self._stream(messages, stop, run_manager, **kwargs))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    rag_chain(model=EagerModel(tokens=["It runs ", "for three ", "years."])).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_the_time_of_the_first_token(captured):
    list(rag_chain().stream(QUESTION, captured.config))

    (generation,) = captured.record().generations
    assert generation.started_ns <= generation.first_token_ns <= generation.ended_ns


def test_a_partial_object_of_a_stream_that_is_closed(captured):
    """The reader got objects; what the model had said until then is the nearest text."""
    model = StreamingModel(tokens=['{"answer": ', '"It runs ', 'for three years."', "}"])
    chunks = (PREPARED | PROMPT | model | JsonOutputParser()).stream(QUESTION, captured.config)
    for chunk in chunks:
        if chunk == {"answer": "It runs"}:
            break
    chunks.close()

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "aborted")
    assert "It runs" in answer.response
    assert "years" not in answer.response
