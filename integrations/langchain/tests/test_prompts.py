"""Which documents reached the prompt, and in which order, whatever the program does with them on the way."""

from __future__ import annotations

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


def asked(captured, source=None, formatter=join_texts):
    """The contexts of a question to a chain with this retriever and this formatter."""
    rag_chain(source, formatter=formatter).invoke(QUESTION, captured.config)
    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, ANSWER, "complete")
    return answer.contexts


# Selected, ordered, changed


def test_a_function_that_keeps_some_documents_in_another_order(captured):
    source = retriever(PUMP, FILTER, MOTOR, HOSE) | (lambda found: [found[2], found[0]])

    assert asked(captured, source) == [MOTOR, PUMP]


def test_a_prompt_without_any_of_the_documents(captured):
    assert asked(captured, formatter=lambda found: f"{len(found)} documents") == []


def test_documents_with_the_same_text_count_once(captured):
    assert asked(captured, retriever(PUMP, HOSE, PUMP)) == [PUMP, HOSE]


def test_documents_that_are_rewritten_in_place(captured):
    def redact(found):
        for document in found:
            document.page_content = "[redacted] " + document.page_content.split()[1]
        return join_texts(found)

    assert asked(captured, formatter=redact) == ["[redacted] pump", "[redacted] are", "[redacted] motor"]


def test_documents_that_are_replaced_by_summaries_of_the_programs_own(captured):
    """New documents made by a step: they reached the prompt, the retrieved ones did not."""

    def shorten(found):
        return documents(*(" ".join(document.page_content.split()[-4:]) for document in found))

    assert asked(captured, retriever() | RunnableLambda(shorten)) == [
        "the date of purchase.",
        "dried in the shade.",
        "watts at full load.",
    ]


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


def test_documents_as_search_result_blocks(captured):
    """Some providers take passages as content blocks, and cite them."""

    def messages(question):
        blocks = [
            {
                "type": "search_result",
                "source": "manual.pdf",
                "title": f"Page {number}",
                "content": [{"type": "text", "text": document.page_content}],
            }
            for number, document in enumerate(retriever().invoke(question))
        ]
        return [HumanMessage([*blocks, {"type": "text", "text": question}])]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_documents_as_document_blocks(captured):
    def messages(question):
        blocks = [
            {
                "type": "document",
                "title": "Manual",
                "source": {"type": "text", "media_type": "text/plain", "data": document.page_content},
                "citations": {"enabled": True},
            }
            for document in retriever().invoke(question)
        ]
        return [HumanMessage([*blocks, {"type": "text", "text": question}])]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


# Steps that hand documents on


def test_a_search_per_document_that_is_added_to_the_first(captured):
    def and_neighbours(found):
        return [*found, *TopicRetriever().invoke("casing")]

    assert asked(captured, retriever(PUMP) | RunnableLambda(and_neighbours)) == [PUMP, CASING]


def test_documents_in_the_question_itself_are_the_users_words(captured):
    """The user quotes a passage that is found, but left out of the context."""
    question = f"Is this true? {MOTOR}"
    program = rag_chain(formatter=lambda found: join_texts(found[:1]))
    program.invoke(question, captured.config)

    assert captured.answers() == [Answered(question, [PUMP], ANSWER)]
