"""Calls that judge documents, or write words to search with, do not make documents count."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from agent_programs import sequence
from captures import Answered
from langchain_core.runnables import RunnableLambda, RunnableParallel, chain
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
        return answer_chain().invoke(
            {"context": join_texts(found[int(number)] for number in best), "question": question}
        )

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


def test_words_that_a_model_takes_from_the_question_to_search_with(captured):
    """They stand in the documents too; what another call made of other documents is not used."""

    @chain
    def rag(question):
        words = say("pump warranty")(f"Which words matter? {question}")
        found = TopicRetriever().invoke(words)
        say("Nothing of interest.")(f"Summarise: {join_texts(retriever(FILTER, MOTOR).invoke(question))}")
        return answer_chain().invoke({"context": join_texts(found), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_a_more_general_question_that_is_searched_for_as_well(captured):
    @chain
    def rag(question):
        general = say("What belongs to the hose?")(f"Ask more generally: {question}")
        found = [*TopicRetriever().invoke(question), *TopicRetriever().invoke(general)]
        return answer_chain().invoke({"context": join_texts(found), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


def test_a_plan_whose_steps_are_answered_one_by_one(captured):
    @chain
    def rag(question):
        steps = say("1. look at the pump\n2. look at the hose")(f"Plan: {question}").splitlines()
        reports = [
            rag_chain(TopicRetriever(), chat_model(f"{step}: done, all is fine.")).invoke(step) for step in steps
        ]
        return say(ANSWER)(f"{question}\n" + "\n".join(reports))

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


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


def test_the_same_answer_twice_from_different_documents(captured):
    """The caller got the second one."""

    @chain
    def rag(question):
        rag_chain(retriever(FILTER), chat_model("I do not know.")).invoke(question)
        return rag_chain(retriever(HOSE), chat_model("I do not know.")).invoke(question)

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [HOSE], "I do not know.")]


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
