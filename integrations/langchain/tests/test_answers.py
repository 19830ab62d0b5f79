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
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    PROMPT,
    QUESTION,
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


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_message(captured, call):
    list(getattr(PREPARED | PROMPT | chat_model(), call)(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("model", [FakeListLLM(responses=[ANSWER]), FakeStreamingListLLM(responses=[ANSWER])])
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_completion_of_a_plain_language_model(captured, model, call):
    list(getattr(PREPARED | PROMPT | model, call)(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_thinking_is_not_a_part_of_the_answer(captured):
    message = AIMessage([{"type": "thinking", "thinking": "Three or four?"}, {"type": "text", "text": ANSWER}])
    (PREPARED | PROMPT | chat_model(message)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_reasoning_blocks_are_not_a_part_of_the_answer(captured):
    message = AIMessage(
        [
            {"type": "reasoning", "reasoning": "Three or four?"},
            {"type": "text", "text": "It runs for "},
            {
                "type": "text",
                "text": "three years.",
                "annotations": [{"type": "citation", "cited_text": "three years"}],
            },
        ]
    )
    (PREPARED | PROMPT | chat_model(message)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_parsed_json(captured, call):
    program = PREPARED | PROMPT | chat_model(json.dumps(STRUCTURED)) | JsonOutputParser()
    list(getattr(program, call)(QUESTION, captured.config))

    assert structured_answer(captured) == STRUCTURED


def test_fenced_json(captured):
    fenced = f"```json\n{json.dumps(STRUCTURED, indent=2)}\n```"
    (PREPARED | PROMPT | chat_model(fenced) | JsonOutputParser()).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == STRUCTURED


def test_a_parsed_model(captured):
    program = PREPARED | PROMPT | chat_model(json.dumps(STRUCTURED)) | PydanticOutputParser(pydantic_object=Warranty)
    program.invoke(QUESTION, captured.config)

    assert structured_answer(captured) == STRUCTURED


def test_a_parsed_list(captured):
    program = PREPARED | PROMPT | chat_model("pump, filter, hose") | CommaSeparatedListOutputParser()
    program.invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert answer.contexts == FOUND
    assert answer.response in ("pump\nfilter\nhose", '["pump", "filter", "hose"]', "pump, filter, hose")


@pytest.mark.parametrize("schema", [Warranty, Warranty.model_json_schema()], ids=["model", "dictionary"])
def test_structured_output_by_a_tool_call(captured, schema):
    model = scripted_model(calls(("Warranty", STRUCTURED))).with_structured_output(schema)
    (PREPARED | PROMPT | model).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == STRUCTURED


def test_structured_output_with_the_raw_message(captured):
    model = scripted_model(calls(("Warranty", STRUCTURED))).with_structured_output(Warranty, include_raw=True)
    (PREPARED | PROMPT | model).invoke(QUESTION, captured.config)

    assert structured_answer(captured)["parsed"] == STRUCTURED


def test_a_dataclass(captured):
    (rag_chain() | (lambda text: Reply(text=text, pages=[1]))).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == {"text": ANSWER, "pages": [1]}


@pytest.mark.parametrize("value", [True, 3, 2.5])
def test_a_plain_value(captured, value):
    (rag_chain() | (lambda text: value)).invoke(QUESTION, captured.config)

    assert structured_answer(captured) == value


# In which field


@pytest.mark.parametrize(
    "name", ["answer", "result", "output", "response", "final_answer", "generation", "reply", "antwort"]
)
def test_a_field_beside_documents_and_question(captured, name):
    program = RunnableParallel(**{name: rag_chain(), "context": retriever(), "question": RunnablePassthrough()})
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_later_model_that_writes_something_else(captured, call):
    """After the answer another call writes follow-up questions."""
    program = RunnablePassthrough.assign(answer=lambda fields: rag_chain().invoke(fields["question"])).assign(
        followups=lambda fields: chat_model("How often? Why?").invoke(f"Follow up on: {fields['answer']}").text
    )
    list(getattr(program, call)({"question": QUESTION}, captured.config))

    assert captured.answers() == [COMPLETE]


def test_two_models_that_answer_at_the_same_time(captured):
    """The second one makes a title of the question; only the first one saw documents."""
    program = RunnableParallel(
        title=(lambda question: f"Title for: {question}") | chat_model("A title") | StrOutputParser(), text=rag_chain()
    )
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_chain_that_only_finds_documents_gives_no_answer(captured):
    """There may be no record of it at all; if there is one, the question is not its answer."""
    RunnableParallel(context=retriever(), question=RunnablePassthrough()).invoke(QUESTION, captured.config)
    (RunnablePassthrough() | retriever()).invoke(QUESTION, captured.config)

    assert [answer.response for answer in captured.answers() if answer.response is not None] == []


def test_a_streamed_step_that_waits_for_the_whole_answer(captured):
    def correct(texts):
        yield "".join(texts).replace("three", "3")

    list((rag_chain() | correct).stream(QUESTION, captured.config))

    assert captured.answers() == [Answered(QUESTION, FOUND, "It runs for 3 years.")]


# Not the model's words


def test_a_guard_that_replaces_the_answer(captured):
    """The documents did reach a prompt, though nothing of the model's words reached the caller."""
    (rag_chain() | (lambda text: "I must not talk about this.")).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, "I must not talk about this.")]


def test_a_judging_model_after_the_answer(captured):
    """Its verdict lets the answer pass; the caller gets the answer."""

    def check(answer):
        verdict = chat_model("yes").invoke(f"Is this polite? {answer}").text
        return answer if verdict == "yes" else "I cannot say."

    (rag_chain() | check).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_judging_model_that_has_the_answer_replaced(captured):
    def check(answer):
        verdict = chat_model("no").invoke(f"Is this polite? {answer}").text
        return answer if verdict == "yes" else "I cannot say."

    (rag_chain() | check).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, "I cannot say.")]
