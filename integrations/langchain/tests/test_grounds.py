"""What the prompts behind an answer held, in programs of LangChain: contexts in the prompt's words, and background."""

from __future__ import annotations

import re

import pytest
from agent_programs import scripted_model
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware, SummarizationMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from rag_programs import ANSWER, MOTOR, PUMP, QUESTION, FixedRetriever, chat_model, documents, join_texts

PRICE = "The spare kit costs forty euros and is sold in Lyon."
PICTURE = "iVBORw0KGgo" * 20


def the_record(captured):
    (record,) = captured.records()
    return record


def background(record):
    return [(each.kind, each.text) for each in record.background]


def contexts(record):
    return None if record.contexts is None else [context.text for context in record.contexts]


def rag(write, *, found=None, model=None):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from this only.\n{context}"), ("human", "{question}")]
    )
    context = FixedRetriever(result=found or documents(PUMP, MOTOR)) | RunnableLambda(write)
    return {"context": context, "question": RunnablePassthrough()} | prompt | (model or chat_model())


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_what_a_formatter_writes_beside_documents_is_metadata(captured, way):
    program = rag(lambda found: f"Price: forty euros\n{join_texts(found)}")
    for _ in (
        [program.invoke(QUESTION, captured.config)] if way == "invoke" else program.stream(QUESTION, captured.config)
    ):
        pass

    record = the_record(captured)
    assert (contexts(record), background(record)) == ([PUMP, MOTOR], [("metadata", "Price: forty euros")])


def test_instructions_and_examples_are_no_background(captured):
    rag(join_texts).invoke(QUESTION, captured.config)

    assert background(the_record(captured)) == []


def test_what_is_masked_before_the_prompt_is_in_no_context(captured):
    text = "The contact of the pump works is anna@example.com, and they open at nine in the morning."

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Search."""
        return text, [Document(text)]

    model = scripted_model(AIMessage("", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1"}]), ANSWER)
    mask = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True, apply_to_input=False)
    create_agent(model, [search], middleware=[mask]).invoke({"messages": [HumanMessage(QUESTION)]}, captured.config)

    assert contexts(the_record(captured)) == [text.replace("anna@example.com", "[REDACTED_EMAIL]")]


def test_a_prompt_that_only_a_template_shows_has_contexts(captured):
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    context = FixedRetriever(result=documents(PUMP)) | RunnableLambda(join_texts)
    program = {"context": context, "question": RunnablePassthrough()} | prompt | RunnableLambda(lambda _: ANSWER)
    program.invoke(QUESTION, captured.config)

    record = the_record(captured)
    assert (contexts(record), record.prompts_seen, record.from_model) == ([PUMP], False, None)


@pytest.mark.parametrize("shown", ["found", "asked"])
def test_a_picture_of_a_found_document_is_not_the_users(captured, shown):
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    asked = HumanMessage([{"type": "text", "text": QUESTION}, *([picture] if shown == "asked" else [])])

    def answer(messages):
        found = FixedRetriever(result=documents(PUMP)).invoke(QUESTION)
        mine = [HumanMessage([picture])] if shown == "found" else []
        return chat_model().invoke([SystemMessage(f"Use: {join_texts(found)}"), *mine, *messages])

    RunnableLambda(answer).invoke([asked], captured.config)

    record = the_record(captured)
    assert (contexts(record), record.contexts_unknown) == ((None, "picture") if shown == "found" else ([PUMP], None))
    assert not record.prompts_seen


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage([{"type": "web_search_call", "id": "1"}, {"type": "text", "text": ANSWER}]),
        AIMessage(
            [
                {"type": "server_tool_use", "name": "web_search", "id": "1", "input": {}},
                {"type": "text", "text": ANSWER},
            ]
        ),
        AIMessage(
            [{"type": "text", "text": ANSWER, "annotations": [{"type": "url_citation", "url": "https://a.example"}]}]
        ),
        AIMessage(ANSWER, response_metadata={"grounding_metadata": {"web_search_queries": ["pump"]}}),
        AIMessage(ANSWER, additional_kwargs={"citations": ["https://a.example"]}),
    ],
    ids=["responses", "messages", "citation", "grounding", "list of citations"],
)
def test_the_providers_own_search_cannot_be_read(captured, reply):
    rag(join_texts, model=chat_model(reply)).invoke(QUESTION, captured.config)

    record = the_record(captured)
    assert (record.contexts, record.contexts_unknown, record.prompts_seen) == (None, "provider_search", False)


def test_a_summary_brings_the_tools_results_that_it_was_written_from(captured):
    @tool
    def price(item: str) -> str:
        """Tell a price."""
        return PRICE

    calls = AIMessage("", tool_calls=[{"name": "price", "args": {"item": "kit"}, "id": "1"}])
    summary = "They asked what the kit costs, and where one buys it."
    middleware = SummarizationMiddleware(scripted_model(summary), trigger=("messages", 4), keep=("messages", 1))
    history = [
        HumanMessage("What is it?"),
        calls,
        price.invoke(calls.tool_calls[0]),
        AIMessage("It is told."),
        HumanMessage(QUESTION),
    ]
    create_agent(scripted_model(PRICE), [price], middleware=[middleware]).invoke({"messages": history}, captured.config)

    assert any(PRICE in text for _, text in background(the_record(captured)))


def test_a_document_prompt_writes_metadata_around_each_text(captured):
    layout = PromptTemplate.from_template("Sold since {year}\n{page_content}")
    found = [Document(PUMP, metadata={"year": "2019"}), Document(MOTOR, metadata={"year": "2021"})]
    rag(
        lambda each: "\n\n".join(layout.format(page_content=one.page_content, **one.metadata) for one in each),
        found=found,
    ).invoke(QUESTION, captured.config)

    assert background(the_record(captured)) == [("metadata", "Sold since 2019"), ("metadata", "Sold since 2021")]


def test_lines_that_are_numbered_for_citations_are_the_documents(captured):
    rag(lambda found: "\n".join(f"{at} | {one.page_content}" for at, one in enumerate(found))).invoke(
        QUESTION, captured.config
    )

    assert contexts(the_record(captured)) == [PUMP, MOTOR]


def test_tags_that_are_stripped_are_no_cut(captured):
    text = f"<p>{PUMP.replace('three', '<b>three</b>')}</p>"
    rag(lambda found: re.sub("<[^>]*>", "", join_texts(found)), found=documents(text)).invoke(QUESTION, captured.config)

    assert contexts(the_record(captured)) == [text]
