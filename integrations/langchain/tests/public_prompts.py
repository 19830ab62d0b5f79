"""Public programs that lay out their prompts in ways of their own."""

from __future__ import annotations

import json

from agent_programs import agent_with, calls, scripted_model, search, search_tool, sequence, user_says
from langchain.agents import create_agent
from langchain.agents.middleware import AgentState, dynamic_prompt
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from public_programs import program
from rag_programs import (
    ANSWER,
    MOTOR,
    PUMP,
    QUESTION,
    FixedRetriever,
    chat_model,
    join_texts,
    rag_chain,
    retriever,
)

WITH_SOURCES = [
    Document(PUMP, id="p", metadata={"source": "manual.pdf", "page": 12}),
    Document(MOTOR, id="m", metadata={"source": "sheet.pdf", "page": 3}),
]


def laid_out(write, found=None, model=None):
    return rag_chain(FixedRetriever(result=found or WITH_SOURCES), model, write)


@program(
    [PUMP, MOTOR],
    background=[
        ("metadata", '<documents>\n<document index="1">\n<source>manual.pdf</source>\n<document_content>'),
        (
            "metadata",
            '</document_content>\n</document>\n<document index="2">\n<source>sheet.pdf</source>\n<document_content>',
        ),
    ],
)
def documents_in_tags(config):
    def write(found):
        each = "\n".join(
            f'<document index="{at}">\n<source>{one.metadata["source"]}</source>\n'
            f"<document_content>\n{one.page_content}\n</document_content>\n</document>"
            for at, one in enumerate(found, 1)
        )
        return f"<documents>\n{each}\n</documents>"

    laid_out(write).invoke(QUESTION, config)


@program(
    [PUMP, MOTOR],
    background=[
        ("metadata", '[\n  {\n    "source": "manual.pdf",\n    "text": "'),
        ("metadata", '"\n  },\n  {\n    "source": "sheet.pdf",\n    "text": "'),
    ],
)
def documents_as_json(config):
    def write(found):
        rows = [{"source": one.metadata["source"], "text": one.page_content} for one in found]
        return json.dumps(rows, indent=2)

    laid_out(write).invoke(QUESTION, config)


@program(
    [PUMP, MOTOR],
    background=[
        ("metadata", "| no | text | page |\n| --- | --- | --- |\n| 1 |"),
        ("metadata", "| 12 |\n| 2 |"),
        ("metadata", "| 3 |"),
    ],
)
def documents_as_rows_of_a_table(config):
    def write(found):
        rows = "\n".join(f"| {at} | {one.page_content} | {one.metadata['page']} |" for at, one in enumerate(found, 1))
        return f"| no | text | page |\n| --- | --- | --- |\n{rows}"

    laid_out(write).invoke(QUESTION, config)


def a_date_and_a_profile():
    return "Today is the third of May. The user is called Ada and has a pump of the first series."


@program([PUMP], background=[("other", "You answer customers.\n\nContext:")])
def a_system_text_in_a_middleware(config):
    @dynamic_prompt
    def with_context(request):
        last = request.state["messages"][-1].text
        return f"You answer customers.\n\nContext:\n{join_texts(retriever(PUMP).invoke(last))}"

    agent = create_agent(scripted_model(ANSWER), [], middleware=[with_context])
    agent.invoke({"messages": [HumanMessage(QUESTION)]}, config)


@program([PUMP], background=[("other", "Ada Byron, on the golden plan")])
def a_profile_in_the_context_of_an_agent(config):
    about = dynamic_prompt(lambda request: "You help {name}, on the {tariff}.".format(**request.runtime.context))
    agent = agent_with(search_tool(), script=[calls(search("pump")), ANSWER], middleware=[about])
    agent.invoke(user_says(QUESTION), config, context={"name": "Ada Byron", "tariff": "golden plan"})


@program([PUMP], background=[("other", a_date_and_a_profile())])
def a_profile_beside_documents_in_one_message(config):
    def answer(state):
        found = join_texts(retriever(PUMP).invoke(state["messages"][-1].text))
        system = SystemMessage(f"{a_date_and_a_profile()}\n\n{found}")
        return {"messages": [chat_model().invoke([system, *state["messages"]])]}

    sequence(AgentState, answer).invoke({"messages": [HumanMessage(QUESTION)]}, config)


@program([PUMP])
def documents_that_a_model_translates_first(config):
    german = "Die Pumpe hat eine Garantie von drei Jahren ab dem Tag des Kaufs, wie es im Handbuch steht."
    translate = ChatPromptTemplate.from_template("Translate:\n{text}") | chat_model(german) | StrOutputParser()
    each = RunnableLambda(lambda found: [{"text": one.page_content} for one in found]) | translate.map()
    ({"context": retriever(PUMP) | each | "\n".join, "question": RunnablePassthrough()} | ask()).invoke(
        QUESTION, config
    )


def ask():
    return ChatPromptTemplate.from_template("{context}\n\n{question}") | chat_model() | StrOutputParser()


@program([PUMP], background=[("tool", "Rows: item, stock\nspare kit, forty\nfilter, nine hundred and two")])
def a_query_of_a_database_beside_a_search(config):
    @tool
    def sql(query: str) -> str:
        """Query the database."""
        return "Rows: item, stock\nspare kit, forty\nfilter, nine hundred and two"

    @tool
    def manual(query: str) -> str:
        """Search the manual."""
        return join_texts(retriever(PUMP).invoke(query))

    script = [calls(("sql", {"query": "select * from stock"}), ("manual", {"query": "pump"})), ANSWER]
    agent_with(sql, manual, script=script).invoke({"messages": [HumanMessage(QUESTION)]}, config)


@program([PUMP], background=[("other", "manual")])
def documents_as_documents_of_a_message(config):
    def answer(question):
        (one,) = retriever(PUMP).invoke(question)
        block = {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": one.page_content},
            "title": "manual",
            "citations": {"enabled": True},
        }
        return chat_model().invoke([HumanMessage([block, {"type": "text", "text": question}])]).text

    RunnableLambda(answer).invoke(QUESTION, config)


@program([PUMP], background=[("metadata", "manual.pdf")])
def a_document_and_a_question_as_the_fields_of_a_prompt(config):
    """The prompt is filled with a document's own fields."""
    prompt = ChatPromptTemplate.from_template("Answer by {source}: {page_content}\n{question}")
    fields = RunnableLambda(lambda found: {**found[0].metadata, "page_content": PUMP, "question": QUESTION})
    (FixedRetriever(result=WITH_SOURCES[:1]) | fields | prompt | chat_model()).invoke(QUESTION, config)
