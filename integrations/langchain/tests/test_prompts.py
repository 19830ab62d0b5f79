"""Which documents reached the prompt, and in which order, whatever the program does with them on the way."""

from __future__ import annotations

from captures import Answered
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, FewShotChatMessagePromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, RunnablePick
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


def test_documents_in_the_order_of_the_prompt_keep_their_rank(captured):
    rag_chain(formatter=lambda found: join_texts(reversed(found))).invoke(QUESTION, captured.config)

    assert [(context.text, context.rank) for context in captured.record().contexts] == [
        (MOTOR, 2),
        (FILTER, 1),
        (PUMP, 0),
    ]


def test_what_the_formatter_leaves_out_does_not_count(captured):
    assert asked(captured, formatter=lambda found: join_texts(found[1:])) == [FILTER, MOTOR]


def test_a_prompt_without_any_of_the_documents(captured):
    assert asked(captured, formatter=lambda found: f"{len(found)} documents") == []


def test_documents_with_the_same_text_count_once(captured):
    assert asked(captured, retriever(PUMP, HOSE, PUMP)) == [PUMP, HOSE]


def test_a_document_that_stands_in_the_prompt_twice_counts_once(captured):
    """First a table of all passages, then the best one again."""
    assert asked(captured, formatter=lambda found: f"{join_texts(found)}\n\nBest: {found[0].page_content}") == FOUND


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


def test_documents_that_are_merged_into_one(captured):
    def merge(found):
        return documents(" ".join(document.page_content for document in found))

    assert asked(captured, retriever() | RunnableLambda(merge)) == [" ".join(FOUND)]


def test_documents_that_are_split_after_the_search(captured):
    def halves(found):
        texts = [document.page_content for document in found]
        return documents(*(half for text in texts for half in (text[: len(text) // 2], text[len(text) // 2 :])))

    source = retriever(PUMP) | RunnableLambda(halves) | RunnableLambda(lambda found: found[1:])

    assert asked(captured, source) == [PUMP[len(PUMP) // 2 :]]


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


def prompted(captured, *messages, **fields):
    """The contexts of a prompt of these messages; `found` is what the retriever found."""
    prompt = ChatPromptTemplate.from_messages(messages)
    source = {"found": retriever() | join_texts, "question": RunnablePassthrough()}
    program = source | RunnablePassthrough.assign(
        **{key: lambda _, value=value: value for key, value in fields.items()}
    )
    (program | prompt | chat_model()).invoke(QUESTION, captured.config)
    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, ANSWER)
    return answer.contexts


def test_documents_in_the_system_message(captured):
    assert prompted(captured, ("system", "Use only this:\n{found}"), ("human", "{question}")) == FOUND


def test_documents_after_the_question(captured):
    assert prompted(captured, ("human", "{question}\n\nSources:\n{found}")) == FOUND


def test_documents_in_a_tool_message_of_the_programs_own(captured):
    def messages(question):
        found = retriever().invoke(question)
        call = AIMessage("", tool_calls=[{"name": "find", "args": {}, "id": "1", "type": "tool_call"}])
        return [HumanMessage(question), call, ToolMessage(join_texts(found), tool_call_id="1")]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER)]


def test_a_message_for_each_document(captured):
    def messages(question):
        found = retriever().invoke(question)
        return [*(SystemMessage(document.page_content) for document in found), HumanMessage(question)]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER)]


def test_examples_in_the_prompt_are_no_documents(captured):
    examples = FewShotChatMessagePromptTemplate(
        examples=[{"question": "How heavy is it?", "answer": "Nine kilograms."}],
        example_prompt=ChatPromptTemplate.from_messages([("human", "{question}"), ("ai", "{answer}")]),
    )

    assert prompted(captured, ("system", "{found}"), examples, ("human", "{question}")) == FOUND


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


def test_documents_as_plain_text_blocks(captured):
    """LangChain's own block for a text file."""

    def messages(question):
        blocks = [
            {"type": "text-plain", "text": document.page_content, "mime_type": "text/plain"}
            for document in retriever().invoke(question)
        ]
        return [HumanMessage([*blocks, {"type": "text", "text": question}])]

    (RunnableLambda(messages) | chat_model()).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


# Steps that hand documents on


def test_fields_that_are_picked(captured):
    program = (
        RunnablePassthrough.assign(found=RunnablePick("question") | retriever())
        | {"context": RunnablePick("found") | RunnableLambda(join_texts), "question": RunnablePick("question")}
        | answer_chain()
    )
    program.invoke({"question": QUESTION, "noise": "ignored"}, captured.config)

    assert captured.answers() == [COMPLETE]


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
