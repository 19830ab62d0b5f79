"""Calls that judge documents, or write words to search with, do not make documents count."""

from __future__ import annotations

from typing import Any, TypedDict

from agent_programs import sequence
from captures import Answered
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnablePassthrough, chain
from lc_captures import answers
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
    say,
)


class GradedState(TypedDict):
    question: str
    documents: list[Any]
    generation: str


def graded(grade):
    """A graph that retrieves, keeps what `grade` lets through, and answers."""

    def retrieve(state: GradedState):
        return {"documents": retriever().invoke(state["question"])}

    def keep(state: GradedState):
        return {"documents": [found for found in state["documents"] if grade(found.page_content)]}

    def generate(state: GradedState):
        fields = {"context": join_texts(state["documents"]), "question": state["question"]}
        return {"generation": answer_chain().invoke(fields)}

    return sequence(GradedState, retrieve, keep, generate)


def test_a_grader_that_drops_a_document(captured):
    verdict = say("yes", "no", "yes")
    graded(lambda text: verdict(f"Relevant? {text}") == "yes").invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], ANSWER)]


@answers(Answered(QUESTION, [PUMP, FILTER], ANSWER))
def test_a_check_of_the_answer_against_the_documents(question):
    """A judging model sees more documents than the answering one."""

    found = retriever().invoke(question)
    answer = answer_chain().invoke({"context": join_texts(found[:2]), "question": question})
    say("grounded")(f"Is this grounded? {answer}\n{join_texts(found)}")
    return answer


# Only to search with


@answers(Answered(QUESTION, [HOSE, MOTOR], ANSWER))
def test_a_passage_that_a_model_makes_up_to_search_with(question):
    passage = say("A hose and a motor are kept dry.")(f"Write a passage on: {question}")
    return answer_chain().invoke({"context": join_texts(TopicRetriever().invoke(passage)), "question": question})


@answers(Answered(QUESTION, [PUMP, HOSE], ANSWER))
def test_a_plan_whose_steps_are_answered_one_by_one(question):
    steps = say("1. look at the pump\n2. look at the hose")(f"Plan: {question}").splitlines()
    reports = [rag_chain(TopicRetriever(), chat_model(f"{step}: done, all is fine.")).invoke(step) for step in steps]
    return say(ANSWER)(f"{question}\n" + "\n".join(reports))


@answers(Answered(QUESTION, [PUMP], ANSWER))
def test_an_answer_that_was_thrown_away(question):
    """The first answer was found wanting; the second one rests on another search."""

    rag_chain(retriever(FILTER), chat_model("It has no warranty at all.")).invoke(question)
    return rag_chain(retriever(PUMP)).invoke(question)


@answers(Answered(QUESTION, [HOSE], "I do not know."))
def test_the_same_answer_twice_from_different_documents(question):
    """The caller got the second one."""

    rag_chain(retriever(FILTER), chat_model("I do not know.")).invoke(question)
    return rag_chain(retriever(HOSE), chat_model("I do not know.")).invoke(question)


# Documents that the answering model sees only through what earlier calls made of them, and calls that only judge


COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# Digested


@answers(COMPLETE)
def test_notes_on_each_document_before_the_answer(question):
    note = say("Three years of warranty.", "Wash it monthly.", "Four hundred watts.")
    notes = [note(f"Note the main point: {found.page_content}") for found in retriever().invoke(question)]
    return say(ANSWER)(f"{question}\nNotes:\n" + "\n".join(notes))


def test_notes_that_were_taken_at_the_same_time(captured):
    notes = ["Three years of warranty.", "Wash it monthly.", "Four hundred watts."]
    take_note = (lambda found: f"Note: {found.page_content}") | chat_model(*notes) | (lambda message: message.text)
    program = {"context": retriever() | take_note.map() | "\n".join, "question": RunnablePassthrough()} | answer_chain()
    program.invoke(QUESTION, captured.config | {"max_concurrency": 1})

    answer = captured.answer()
    assert (answer.question, set(answer.contexts), answer.response) == (QUESTION, set(FOUND), ANSWER)


@answers(Answered(QUESTION, [PUMP, MOTOR], "It runs for three years. It draws four hundred watts."))
def test_partial_answers_that_are_joined_without_a_model(question):
    part = say("It runs for three years.", "It draws four hundred watts.")
    return " ".join(part(f"{topic}?\n{join_texts(TopicRetriever().invoke(topic))}") for topic in ("pump", "motor"))


def test_partial_answers_in_a_list_of_points(captured):
    @chain
    def rag(question):
        part = say("It runs for three years.", "It draws four hundred watts.")
        points = [part(f"{topic}?\n{join_texts(TopicRetriever().invoke(topic))}") for topic in ("pump", "motor")]
        return "Here is what I found:\n" + "\n".join(f"- {point}" for point in points)

    rag.invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert answer.contexts == [PUMP, MOTOR]


@answers(COMPLETE)
def test_a_draft_that_is_criticised_and_revised(question):
    draft = rag_chain(model=chat_model("It runs for some years, perhaps three.")).invoke(question)
    critique = say("Be more precise about the number.")(f"Criticise this draft: {draft}")
    return say(ANSWER)(f"Revise.\nDraft: {draft}\nCritique: {critique}")


@answers(Answered(QUESTION, [PUMP, HOSE], ANSWER))
def test_a_draft_that_is_revised_with_a_second_search(question):
    """The documents of the draft and those of the revision both stand behind the answer."""

    draft = rag_chain(retriever(PUMP), chat_model("It runs for some years, perhaps three.")).invoke(question)
    more = join_texts(TopicRetriever().invoke("hose"))
    return say(ANSWER)(f"Improve the draft.\nDraft: {draft}\nMore: {more}")


def test_a_translation_of_the_answer(captured):
    program = rag_chain() | (lambda text: f"Translate into German: {text}") | chat_model("Sie läuft drei Jahre.")
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, "Sie läuft drei Jahre.")]


def test_facts_that_were_extracted_as_json(captured):
    extract = (
        chat_model('{"facts": ["The warranty has a term of three years.", "Filters need water."]}') | JsonOutputParser()
    )

    @chain
    def rag(question):
        facts = extract.invoke(f"Extract facts as JSON:\n{join_texts(retriever().invoke(question))}")["facts"]
        return say(ANSWER)(f"{question}\nFacts:\n" + "\n".join(f"* {fact}" for fact in facts))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]
