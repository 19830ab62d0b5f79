"""Which model calls stand behind an answer, and with them which documents."""

from __future__ import annotations

import contextlib

import pytest
from agent_programs import RagState, agent_with, answer_node, calls, look_up, retrieve_node, user_says
from captures import Answered
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough, chain
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
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
from typing_extensions import TypedDict

PROMPT = ChatPromptTemplate.from_template("Use: {context}\n\n{question}")


def rephrasing_chain(model=None):
    """A model rephrases the question before the search, and another one answers."""
    rephrase = ChatPromptTemplate.from_template("Rephrase: {question}") | chat_model("pump motor") | StrOutputParser()
    found = rephrase | retriever(PUMP, MOTOR) | join_texts
    return RunnablePassthrough.assign(context=found) | PROMPT | (model or chat_model()) | StrOutputParser()


# Answers that were cut off


def test_a_stream_that_is_closed_has_the_documents_of_the_model_that_was_speaking(captured):
    stream = rephrasing_chain().stream({"question": QUESTION}, captured.config)
    read = "".join(next(stream) for _ in range(3))
    stream.close()

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], read, "aborted")]


# What models pass on to others


def ask_each(notes, texts):
    """A model makes a note of each document; another one answers from the notes."""

    @chain
    def program(question):
        said = [
            chat_model(note).invoke(f"{join_texts(retriever(text).invoke(question))}\n{question}").text
            for note, text in zip(notes, texts, strict=True)
        ]
        return chat_model().invoke("\n".join([*said, question])).text

    return program


@pytest.mark.parametrize(
    "notes",
    [
        ("Three years.", "Four hundred watts."),
        ("Three", "400"),
        ("保修期为三年。", "功率为四百瓦。"),
        ('{"note": "three years of warranty"}', "It draws four hundred watts. That is a lot."),
    ],
    ids=["sentences", "words", "chinese", "json and two sentences"],
)
def test_notes_of_any_kind_make_the_documents_count_that_they_digest(captured, notes):
    ask_each(notes, (PUMP, MOTOR)).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], ANSWER)]


def test_what_a_tool_read_of_an_inner_answer_makes_its_documents_count(captured):
    @tool
    def ask(text: str) -> str:
        """Ask."""
        with contextlib.closing(
            rag_chain(retriever(MOTOR), chat_model("one two three four five")).stream(text)
        ) as words:
            return "".join(next(words) for _ in range(5))

    agent_with(ask, script=[calls(("ask", {"text": "w?"})), ANSWER]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [MOTOR], ANSWER)]


def test_a_better_question_brings_no_documents_of_the_worse_one(captured):
    """The model that writes it saw documents which a second search replaced; both searches ask the store itself."""

    class State(TypedDict, total=False):
        question: str
        context: list
        answer: str
        turn: int

    def find(state):
        return {"context": look_up("pump" if state.get("turn") else "hose"), "turn": state.get("turn", 0) + 1}

    def improve(state):
        prompt = f"Improve {state['question']}, for these are useless: {join_texts(state['context'])}"
        return {"question": chat_model("What warranty does the pump carry exactly?").invoke(prompt).text}

    graph = StateGraph(State)
    for node in (find, improve, answer_node):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "find")
    graph.add_conditional_edges("find", lambda state: "improve" if state["turn"] < 2 else "answer_node")
    graph.add_edge("improve", "find")
    graph.add_edge("answer_node", END)
    graph.compile().invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


# Answers that are not just what one model said


def test_two_answers_in_fields_are_one_object_with_the_documents_of_both(captured):
    program = RunnableParallel(
        period=rag_chain(retriever(PUMP), chat_model("It is three years.")),
        power=rag_chain(retriever(MOTOR), chat_model("Watts")),
    )
    program.invoke(QUESTION, captured.config)

    expected = '{"period": "It is three years.", "power": "Watts"}'
    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], expected)]


# Interruptions


def waiting_graph():
    def ask(state: RagState):
        interrupt("Go on?")
        return {}

    graph = StateGraph(RagState)
    graph.add_sequence([retrieve_node, ask, answer_node])
    graph.add_edge(START, "retrieve_node")
    return graph.compile(checkpointer=InMemorySaver())


def test_a_reader_who_leaves_at_the_interruption_leaves_an_interrupted_request(captured):
    graph = waiting_graph()
    with contextlib.closing(graph.stream({"question": QUESTION}, captured.thread(), stream_mode="updates")) as chunks:
        next(chunk for chunk in chunks if "__interrupt__" in chunk)
    graph.invoke(Command(resume=1), captured.thread())

    waiting, answered = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert answered == Answered(QUESTION, [PUMP], ANSWER)


def test_an_agent_that_goes_on_answers_the_user_and_not_its_tools_argument(captured):
    @tool(response_format="content_and_artifact")
    def find(query: str):
        """Find."""
        interrupt("May I?")
        return join_texts(look_up(query)), look_up(query)

    agent = agent_with(find, script=[calls(("find", {"query": "pump"})), ANSWER], checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread())
    agent.invoke(Command(resume="yes"), captured.thread())

    assert captured.answers()[1] == Answered(QUESTION, [PUMP], ANSWER)


# Calls that judge documents, or write words to search with, do not make documents count


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


@answers(Answered(QUESTION, [PUMP], ANSWER))
def test_an_answer_that_was_thrown_away(question):
    """The first answer was found wanting; the second one rests on another search."""

    rag_chain(retriever(FILTER), chat_model("It has no warranty at all.")).invoke(question)
    return rag_chain(retriever(PUMP)).invoke(question)


# Documents that the answering model sees only through what earlier calls made of them, and calls that only judge


COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# Digested


@answers(Answered(QUESTION, [PUMP, MOTOR], "It runs for three years. It draws four hundred watts."))
def test_partial_answers_that_are_joined_without_a_model(question):
    part = say("It runs for three years.", "It draws four hundred watts.")
    return " ".join(part(f"{topic}?\n{join_texts(TopicRetriever().invoke(topic))}") for topic in ("pump", "motor"))


@answers(COMPLETE)
def test_a_draft_that_is_criticised_and_revised(question):
    draft = rag_chain(model=chat_model("It runs for some years, perhaps three.")).invoke(question)
    critique = say("Be more precise about the number.")(f"Criticise this draft: {draft}")
    return say(ANSWER)(f"Revise.\nDraft: {draft}\nCritique: {critique}")


def test_a_translation_of_the_answer(captured):
    program = rag_chain() | (lambda text: f"Translate into German: {text}") | chat_model("Sie läuft drei Jahre.")
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, "Sie läuft drei Jahre.")]
