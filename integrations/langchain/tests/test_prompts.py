"""Which documents reached the prompt, and in which order, whatever the program does with them on the way."""

from __future__ import annotations

import pytest
from captures import Answered
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_programs import (
    ANSWER,
    CASING,
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
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# Selected, ordered, changed


def redacted(found):
    for document in found:
        document.page_content = "[redacted] " + document.page_content.split()[1]
    return join_texts(found)


def shortened(found):
    """New documents: they reach the prompt, the retrieved ones do not."""
    return documents(*(" ".join(document.page_content.split()[-4:]) for document in found))


COURSES = {
    "some in another order": (
        retriever(PUMP, FILTER, MOTOR, HOSE) | (lambda found: [found[2], found[0]]),
        join_texts,
        [MOTOR, PUMP],
    ),
    "none shown": (None, lambda found: f"{len(found)} documents", []),
    "the same text twice": (retriever(PUMP, HOSE, PUMP), join_texts, [PUMP, HOSE]),
    "rewritten in place": (None, redacted, ["[redacted] pump", "[redacted] are", "[redacted] motor"]),
    "replaced by summaries": (
        retriever() | RunnableLambda(shortened),
        join_texts,
        ["the date of purchase.", "dried in the shade.", "watts at full load."],
    ),
    "more added": (
        retriever(PUMP) | RunnableLambda(lambda found: [*found, *TopicRetriever().invoke("casing")]),
        join_texts,
        [PUMP, CASING],
    ),
}


@pytest.mark.parametrize(("source", "formatter", "contexts"), COURSES.values(), ids=COURSES)
def test_what_a_program_does_with_documents_on_the_way(captured, source, formatter, contexts):
    rag_chain(source, formatter=formatter).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, contexts, ANSWER)]


def test_a_search_whose_result_a_later_search_replaces(captured):
    """The first result is used to choose the second query only."""

    def second_search(fields):
        return TopicRetriever().invoke("hose" if fields["found"] else "motor")

    program = (
        RunnablePassthrough.assign(found=lambda fields: retriever(PUMP).invoke(fields["question"]))
        .assign(found=second_search)
        .assign(context=lambda fields: join_texts(fields["found"]))
        | answer_chain()
    )
    program.invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [HOSE], ANSWER)]


# Where in the prompt


def test_documents_in_a_tool_message_of_the_programs_own(captured):
    def messages(question):
        found = retriever().invoke(question)
        call = AIMessage("", tool_calls=[{"name": "find", "args": {}, "id": "1", "type": "tool_call"}])
        return [HumanMessage(question), call, ToolMessage(join_texts(found), tool_call_id="1")]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER)]


def test_the_assistants_earlier_words_are_no_documents(captured):
    """A document that was found but left out of the prompt stands in the history, in the assistant's own words."""
    history = [HumanMessage("What of the motor?"), AIMessage(f"It says: {MOTOR}")]
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Use: {context}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    source = {
        "context": retriever() | (lambda found: join_texts(found[:2])),
        "question": RunnablePassthrough(),
        "history": lambda _: history,
    }
    (source | prompt | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, FILTER], ANSWER)]


BLOCKS = {
    "search results": lambda text: {
        "type": "search_result",
        "source": "manual.pdf",
        "title": "Page",
        "content": [{"type": "text", "text": text}],
    },
    "documents": lambda text: {
        "type": "document",
        "title": "Manual",
        "source": {"type": "text", "media_type": "text/plain", "data": text},
        "citations": {"enabled": True},
    },
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_documents_as_content_blocks(captured, block):
    """Some providers take passages in this way, and cite them."""

    def messages(question):
        blocks = [block(document.page_content) for document in retriever().invoke(question)]
        return [HumanMessage([*blocks, {"type": "text", "text": question}])]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_documents_in_the_question_itself_are_the_users_words(captured):
    """The user quotes a passage that is found, but left out of the context."""
    question = f"Is this true? {MOTOR}"
    program = rag_chain(formatter=lambda found: join_texts(found[:1]))
    program.invoke(question, captured.config)

    assert captured.answers() == [Answered(question, [PUMP], ANSWER)]
