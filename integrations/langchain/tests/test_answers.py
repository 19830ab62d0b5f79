"""The response is what the caller got."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from agent_programs import calls, scripted_model
from captures import Answered
from langchain_core.language_models import FakeListLLM, FakeStreamingListLLM
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import (
    CommaSeparatedListOutputParser,
    JsonOutputParser,
    PydanticOutputParser,
    StrOutputParser,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from pydantic import BaseModel
from rag_programs import ANSWER, FOUND, PROMPT, QUESTION, StreamingModel, chat_model, join_texts, rag_chain, retriever

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


def says_json(text=None):
    return PREPARED | PROMPT | chat_model(text or json.dumps(STRUCTURED))


def says_it_by_a_tool_call(schema, **options):
    model = scripted_model(calls(("Warranty", STRUCTURED))).with_structured_output(schema, **options)
    return PREPARED | PROMPT | model


OBJECTS = {
    "parsed JSON": lambda: (says_json() | JsonOutputParser(), STRUCTURED),
    "fenced JSON": lambda: (
        says_json(f"```json\n{json.dumps(STRUCTURED, indent=2)}\n```") | JsonOutputParser(),
        STRUCTURED,
    ),
    "parsed model": lambda: (says_json() | PydanticOutputParser(pydantic_object=Warranty), STRUCTURED),
    "tool call": lambda: (says_it_by_a_tool_call(Warranty), STRUCTURED),
    "tool call by a schema": lambda: (says_it_by_a_tool_call(Warranty.model_json_schema()), STRUCTURED),
    "dataclass": lambda: (rag_chain() | (lambda text: Reply(text=text, pages=[1])), {"text": ANSWER, "pages": [1]}),
    "true": lambda: (rag_chain() | (lambda text: True), True),
    "number": lambda: (rag_chain() | (lambda text: 3), 3),
    "fraction": lambda: (rag_chain() | (lambda text: 2.5), 2.5),
}


@pytest.mark.parametrize("made", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_an_answer_that_is_an_object(captured, made, call):
    program, expected = made()
    answered = getattr(program, call)(QUESTION, captured.config)
    if call == "stream":
        list(answered)

    assert structured_answer(captured) == expected


def test_a_parsed_list(captured):
    program = PREPARED | PROMPT | chat_model("pump, filter, hose") | CommaSeparatedListOutputParser()
    program.invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert answer.contexts == FOUND
    assert answer.response in ("pump\nfilter\nhose", '["pump", "filter", "hose"]', "pump, filter, hose")


def test_structured_output_with_the_raw_message(captured):
    says_it_by_a_tool_call(Warranty, include_raw=True).invoke(QUESTION, captured.config)

    assert structured_answer(captured)["parsed"] == STRUCTURED


# In which field


@pytest.mark.parametrize(
    "name", ["answer", "result", "output", "response", "final_answer", "generation", "reply", "antwort"]
)
def test_a_field_beside_documents_and_question(captured, name):
    program = RunnableParallel(**{name: rag_chain(), "context": retriever(), "question": RunnablePassthrough()})
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_two_models_that_answer_at_the_same_time(captured):
    """The second one makes a title of the question; only the first one saw documents."""
    program = RunnableParallel(
        title=(lambda question: f"Title for: {question}") | chat_model("A title") | StrOutputParser(), text=rag_chain()
    )
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_streamed_step_that_waits_for_the_whole_answer(captured):
    def correct(texts):
        yield "".join(texts).replace("three", "3")

    list((rag_chain() | correct).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, "It runs for 3 years.")]


# Not the model's words


def guarded(answer):
    return "I must not talk about this."


def checked(verdict):
    """A model judges the answer; where it objects, the caller gets something else."""

    def check(answer):
        said = chat_model(verdict).invoke(f"Is this polite? {answer}").text
        return answer if said == "yes" else "I cannot say."

    return check


@pytest.mark.parametrize(
    ("check", "response"),
    [(guarded, "I must not talk about this."), (checked("yes"), ANSWER), (checked("no"), "I cannot say.")],
    ids=["guard", "passed", "replaced"],
)
def test_a_step_that_lets_the_answer_pass_or_replaces_it(captured, check, response):
    """The documents did reach a prompt, even if nothing of the model's words reaches the caller."""
    (rag_chain() | check).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, response)]


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
