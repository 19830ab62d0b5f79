"""Documents that the answering model sees only through what earlier calls made of them, and calls that only judge."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from agent_programs import calls, scripted_model, sequence
from captures import Answered
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain
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
    documents,
    join_texts,
    look_up,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


def say(*lines):
    """A function that asks one model after another."""
    model = chat_model(*lines)
    return lambda prompt: model.invoke(prompt).text


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
        summary = say("The pump has three years, the rest is care.")(f"Summarise:\n{join_texts(retriever().invoke(question))}")
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
        answers = [rag_chain(TopicRetriever(), chat_model(f"On the {topic}: all is well.")).invoke(topic) for topic in topics]
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
    extract = chat_model('{"facts": ["The warranty has a term of three years.", "Filters need water."]}') | JsonOutputParser()

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


# Only judged


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


def test_a_grader_that_gives_reasons(captured):
    verdict = say(
        '{"relevant": true, "reason": "It names the warranty."}',
        '{"relevant": false, "reason": "It is about washing."}',
        '{"relevant": true, "reason": "It is about power."}',
    )
    graded(lambda text: "true" in verdict(f"Relevant? {text}")).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], ANSWER)]


def test_a_grader_that_drops_everything(captured):
    verdict = say("no")
    graded(lambda text: verdict(f"Relevant? {text}") == "yes").invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_a_model_that_ranks_the_documents(captured):
    """It sees all of them and names the two that go into the answer's prompt."""

    @chain
    def rag(question):
        found = retriever().invoke(question)
        listing = "\n".join(f"{number}: {document.page_content}" for number, document in enumerate(found))
        best = say("2, 0")(f"Rank for {question}:\n{listing}").split(", ")
        return answer_chain().invoke({"context": join_texts(found[int(number)] for number in best), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP], ANSWER)]


def test_a_check_of_the_answer_against_the_documents(captured):
    """A judging model sees more documents than the answering one."""

    @chain
    def rag(question):
        found = retriever().invoke(question)
        answer = answer_chain().invoke({"context": join_texts(found[:2]), "question": question})
        say("grounded")(f"Is this grounded? {answer}\n{join_texts(found)}")
        return answer

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, FILTER], ANSWER)]


def test_a_model_that_decides_whether_to_search_on(captured):
    @chain
    def rag(question):
        found = retriever(PUMP).invoke(question)
        if say("Search on, please.")(f"Enough? {join_texts(found)}") != "enough":
            found = TopicRetriever().invoke("hose")
        return answer_chain().invoke({"context": join_texts(found), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [HOSE], ANSWER)]


# Only to search with


def test_a_passage_that_a_model_makes_up_to_search_with(captured):
    @chain
    def rag(question):
        passage = say("A hose and a motor are kept dry.")(f"Write a passage on: {question}")
        return answer_chain().invoke({"context": join_texts(TopicRetriever().invoke(passage)), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [HOSE, MOTOR], ANSWER)]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_loop_that_rewrites_the_query_until_something_fits(captured, rounds):
    """Each search supersedes the one before, although a model saw its result when it rewrote the query."""
    queries = ["the filter", "the motor", "the pump"][-rounds:]

    @chain
    def rag(question):
        found = []
        for query in queries:
            rewritten = say(query)(f"Better words than these? {question}\n{join_texts(found)}")
            found = TopicRetriever().invoke(rewritten)
        return answer_chain().invoke({"context": join_texts(found), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_an_answer_that_was_thrown_away(captured):
    """The first answer was found wanting; the second one rests on another search."""

    @chain
    def rag(question):
        rag_chain(retriever(FILTER), chat_model("It has no warranty at all.")).invoke(question)
        return rag_chain(retriever(PUMP)).invoke(question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_the_better_of_two_answers(captured):
    """Two chains answer from different shelves, and a function takes the first one's answer."""
    program = RunnableParallel(
        manual=rag_chain(retriever(PUMP, FILTER)),
        shop=rag_chain(retriever(HOSE), chat_model("The shop sells hoses.")),
    )
    (program | RunnableLambda(lambda answers: answers["manual"])).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, FILTER], ANSWER)]


def test_the_better_of_two_answers_that_a_model_chooses(captured):
    """The choosing model repeats the answer that it takes."""

    @chain
    def rag(question):
        manual = rag_chain(retriever(PUMP, FILTER)).invoke(question)
        shop = rag_chain(retriever(HOSE), chat_model("The shop sells hoses.")).invoke(question)
        return say(ANSWER)(f"Which is better?\nA: {manual}\nB: {shop}")

    rag.invoke(QUESTION, captured.config)

    assert set(captured.answer().contexts) == {PUMP, FILTER, HOSE}


def test_documents_that_the_program_only_counts(captured):
    @chain
    def rag(question):
        count = len(look_up(question)) + len(documents(*FOUND))
        return say(ANSWER)(f"{question} There are {count} documents.")

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]
