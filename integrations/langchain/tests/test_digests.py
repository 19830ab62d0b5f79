"""Documents that the answering model sees only through what earlier calls made of them, and calls that only judge."""

from __future__ import annotations

from agent_programs import calls, scripted_model
from captures import Answered
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnablePassthrough, chain
from pydantic import BaseModel
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

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# Digested


def test_notes_on_each_document_before_the_answer(captured):
    @chain
    def rag(question):
        note = say("Three years of warranty.", "Wash it monthly.", "Four hundred watts.")
        notes = [note(f"Note the main point: {found.page_content}") for found in retriever().invoke(question)]
        return say(ANSWER)(f"{question}\nNotes:\n" + "\n".join(notes))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_notes_that_were_taken_at_the_same_time(captured):
    notes = ["Three years of warranty.", "Wash it monthly.", "Four hundred watts."]
    take_note = (lambda found: f"Note: {found.page_content}") | chat_model(*notes) | (lambda message: message.text)
    program = {"context": retriever() | take_note.map() | "\n".join, "question": RunnablePassthrough()} | answer_chain()
    program.invoke(QUESTION, captured.config | {"max_concurrency": 1})

    answer = captured.answer()
    assert (answer.question, set(answer.contexts), answer.response) == (QUESTION, set(FOUND), ANSWER)


def test_one_summary_of_all_documents(captured):
    @chain
    def rag(question):
        summary = say("The pump has three years, the rest is care.")(
            f"Summarise:\n{join_texts(retriever().invoke(question))}"
        )
        return say(ANSWER)(f"{question}\n\n{summary}")

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_summary_of_some_and_the_rest_in_full(captured):
    """Documents of earlier prompts come first, each in the order of its prompt."""

    @chain
    def rag(question):
        first, *others = retriever().invoke(question)
        summary = say("Care and power, in short.")(f"Summarise:\n{join_texts(others)}")
        return say(ANSWER)(f"{question}\n\n{summary}\n\n{first.page_content}")

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [FILTER, MOTOR, PUMP], ANSWER)]


def test_partial_answers_that_are_joined_without_a_model(captured):
    @chain
    def rag(question):
        part = say("It runs for three years.", "It draws four hundred watts.")
        return " ".join(part(f"{topic}?\n{join_texts(TopicRetriever().invoke(topic))}") for topic in ("pump", "motor"))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [
        Answered(QUESTION, [PUMP, MOTOR], "It runs for three years. It draws four hundred watts.")
    ]


def test_partial_answers_in_a_list_of_points(captured):
    @chain
    def rag(question):
        part = say("It runs for three years.", "It draws four hundred watts.")
        points = [part(f"{topic}?\n{join_texts(TopicRetriever().invoke(topic))}") for topic in ("pump", "motor")]
        return "Here is what I found:\n" + "\n".join(f"- {point}" for point in points)

    rag.invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert answer.contexts == [PUMP, MOTOR]


def test_answers_to_parts_of_the_question_before_the_whole(captured):
    @chain
    def rag(question):
        topics = say("pump\nmotor")(f"Split into topics: {question}").splitlines()
        answers = [
            rag_chain(TopicRetriever(), chat_model(f"On the {topic}: all is well.")).invoke(topic) for topic in topics
        ]
        return say(ANSWER)(f"{question}\n\n" + "\n".join(answers))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], ANSWER)]


def test_a_draft_that_is_criticised_and_revised(captured):
    @chain
    def rag(question):
        draft = rag_chain(model=chat_model("It runs for some years, perhaps three.")).invoke(question)
        critique = say("Be more precise about the number.")(f"Criticise this draft: {draft}")
        return say(ANSWER)(f"Revise.\nDraft: {draft}\nCritique: {critique}")

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_draft_that_is_revised_with_a_second_search(captured):
    """The documents of the draft and those of the revision both stand behind the answer."""

    @chain
    def rag(question):
        draft = rag_chain(retriever(PUMP), chat_model("It runs for some years, perhaps three.")).invoke(question)
        more = join_texts(TopicRetriever().invoke("hose"))
        return say(ANSWER)(f"Improve the draft.\nDraft: {draft}\nMore: {more}")

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


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


def test_facts_that_were_extracted_by_a_tool_call(captured):
    class Facts(BaseModel):
        facts: list[str]

    facts = ["The warranty has a term of three years.", "Filters need water."]
    extract = scripted_model(calls(("Facts", {"facts": facts}))).with_structured_output(Facts)

    @chain
    def rag(question):
        found = extract.invoke(f"Extract facts:\n{join_texts(retriever().invoke(question))}")
        return say(ANSWER)(f"{question}\nFacts:\n" + "\n".join(found.facts))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_summary_that_becomes_a_document(captured):
    """The answering model does see a document: the one that another model wrote."""
    summary = "In short: three years, monthly rinsing, four hundred watts."

    @chain
    def rag(question):
        found = retriever().invoke(question)
        return rag_chain(retriever(say(summary)(f"Summarise:\n{join_texts(found)}"))).invoke(question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [summary], ANSWER)]
