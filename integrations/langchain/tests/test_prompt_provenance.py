"""Which model calls stand behind an answer, and with them which documents."""

import contextlib

import pytest
from agent_programs import (
    RagState,
    agent_with,
    answer_node,
    calls,
    look_up,
    retrieve_node,
    search,
    search_agent,
    user_says,
)
from captures import Answered
from langchain_core.messages import AIMessage
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
    FOUND,
    MOTOR,
    PUMP,
    QUESTION,
    StreamingModel,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
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


def test_a_model_that_dies_while_it_speaks_has_its_documents(captured):
    def die(text):
        raise ConnectionResetError

    read = []
    model = StreamingModel(tokens=["It ", "runs."], then=die)
    with contextlib.suppress(ConnectionResetError):
        read.extend(rephrasing_chain(model).stream({"question": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, [PUMP, MOTOR], "".join(read), "error", "ConnectionResetError")]


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


def test_the_first_sentence_of_a_note_is_enough(captured):
    @chain
    def program(question):
        note = chat_model("It is three years long. The rest is of no use.").invoke(
            join_texts(retriever(PUMP).invoke(""))
        )
        return chat_model().invoke(f"{note.text.split('.')[0]}.\n{question}").text

    program.invoke(QUESTION, captured.config)

    assert captured.answer().contexts == [PUMP]


def test_sixty_notes(captured):
    texts = [f"Section {number}: part {number * 37} belongs to assembly {number * 91}." for number in range(60)]
    notes = [f"note {number}: assembly {number * 91} uses it" for number in range(60)]
    ask_each(notes, texts).invoke(QUESTION, captured.config)

    assert captured.answer().contexts == texts


def test_a_grade_does_not_make_a_document_count(captured):
    ask_each(("yes", "no"), (PUMP, MOTOR)).invoke("Say yes or no if you must.", captured.config)

    assert captured.answer().contexts == []


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


@answers(Answered(QUESTION, FOUND, ANSWER.upper()))
def test_an_answer_in_capitals_is_still_the_models(question):
    answer = rag_chain().invoke(question)
    chat_model("Is it long? Is it short?").invoke("Write questions on warranties.")
    return answer.upper()


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


class TextState(TypedDict):
    question: str
    context: str
    answer: str


def text_graph():
    """The state keeps the documents as text only."""

    def find(state: TextState):
        return {"context": join_texts(retriever(PUMP, MOTOR).invoke(state["question"]))}

    def ask(state: TextState):
        interrupt("Go on?")
        return {}

    def answer(state: TextState):
        return {"answer": chat_model().invoke(f"{state['context']}\n{state['question']}").text}

    graph = StateGraph(TextState)
    graph.add_sequence([find, ask, answer])
    graph.add_edge(START, "find")
    return graph.compile(checkpointer=InMemorySaver())


def test_documents_found_before_the_interruption_count_though_the_state_keeps_text_only(captured):
    graph = text_graph()
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume=1), captured.thread())

    assert captured.answers()[1] == Answered(QUESTION, [PUMP, MOTOR], ANSWER)


def test_a_new_question_makes_what_was_found_for_the_waiting_one_void(captured):
    graph = text_graph()
    graph.invoke({"question": QUESTION}, captured.thread())
    chat = search_agent(f"{ANSWER} {PUMP}", checkpointer=InMemorySaver())
    chat.invoke(user_says("Thank you!"), captured.thread())
    graph.invoke(Command(resume=1), captured.thread())

    assert captured.answers()[2].contexts is None


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


def test_the_first_turns_words_of_a_conversation_do_not_count_again(captured):
    """The assistant quoted a document in its last answer; it is not retrieved in this turn."""
    agent = search_agent(calls(search("pump")), PUMP, "You are welcome.", checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread())
    agent.invoke(user_says("Thank you!"), captured.thread())

    assert captured.answers()[1] == Answered("Thank you!", [], "You are welcome.")


def test_a_message_with_a_thought_and_a_call_is_no_digest_of_other_documents(captured):
    script = [AIMessage("I look for the pump.", tool_calls=calls(search("pump")).tool_calls), ANSWER]
    search_agent(*script).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]
