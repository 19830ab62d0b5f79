"""Public programs that are agents, graphs, or answer in a form of their own."""

from __future__ import annotations

import json
import operator
from typing import Annotated, TypedDict

from agent_programs import agent_with, calls, scripted_model, search, search_agent, search_tool, user_says
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from public_programs import program
from pydantic import BaseModel, Field
from rag_programs import (
    ANSWER,
    HOSE,
    MOTOR,
    PROMPT,
    PUMP,
    QUESTION,
    FixedRetriever,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
)


class Citation(BaseModel):
    """A passage that the answer rests on."""

    source: int
    quote: str


class Cited(BaseModel):
    """An answer with its citations."""

    answer: str = Field(description="never say that the pump is sold in Lyon for ninety euros")
    citations: list[Citation]


CITED = {"answer": ANSWER, "citations": [{"source": 0, "quote": "three years from the date"}]}


@program(
    [PUMP, MOTOR],
    response=json.dumps(CITED),
    background=[("metadata", "Source ID: 0\nArticle:"), ("metadata", "Source ID: 1\nArticle:")],
)
def an_answer_with_citations(config):
    def write(found):
        return "\n\n".join(f"Source ID: {at}\nArticle: {one.page_content}" for at, one in enumerate(found))

    model = scripted_model(calls(("Cited", CITED))).with_structured_output(Cited)
    ({"context": retriever(PUMP, MOTOR) | write, "question": RunnablePassthrough()} | PROMPT | model).invoke(
        QUESTION, config
    )


@program([PUMP])
def a_graph_with_a_node_of_tools(config):
    model = scripted_model(calls(search("pump")), ANSWER)
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([search_tool()]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    graph.compile().invoke(user_says(QUESTION), config)


@program([PUMP], response="The workers say three years.")
def a_supervisor_of_two_workers(config):
    worker = search_agent(calls(search("pump")), ANSWER, name="researcher")

    def supervise(state):
        if any(each.name == "researcher" for each in state["messages"]):
            said = chat_model("The workers say three years.").invoke([SystemMessage("You lead."), *state["messages"]])
            return Command(goto=END, update={"messages": [said]})
        chat_model("researcher").invoke([SystemMessage("Who shall act next?"), *state["messages"]])
        return Command(goto="researcher")

    def research(state):
        said = worker.invoke({"messages": state["messages"]})["messages"][-1].text
        return Command(goto="supervise", update={"messages": [HumanMessage(said, name="researcher")]})

    graph = StateGraph(MessagesState)
    graph.add_node("supervise", supervise, destinations=("researcher", END))
    graph.add_node("researcher", research, destinations=("supervise",))
    graph.add_edge(START, "supervise")
    graph.compile().invoke(user_says(QUESTION), config)


class Mapped(TypedDict, total=False):
    question: str
    notes: Annotated[list[str], operator.add]
    answer: str


@program([PUMP, HOSE], background=[("other", "Take notes.")])
def notes_that_are_taken_side_by_side(config):
    def plan(state):
        return {"question": state["question"]}

    def note(state):
        (found,) = FixedRetriever(result=documents(state["text"])).invoke(state["question"])
        said = chat_model(f"It says of {found.page_content.split()[1]} what one needs to know.").invoke(
            f"Take notes.\n\n{found.page_content}"
        )
        return {"notes": [said.text]}

    def answer(state):
        notes = "\n".join(f"- {each}" for each in state["notes"])
        return {"answer": chat_model().invoke(f"Notes:\n{notes}\n\n{state['question']}").text}

    graph = StateGraph(Mapped)
    for node in (plan, note, answer):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda state: [Send("note", {"question": state["question"], "text": text}) for text in (PUMP, HOSE)]
    )
    graph.add_edge("note", "answer")
    graph.add_edge("answer", END)
    graph.compile().invoke({"question": QUESTION}, config)


@program([PUMP], background=[("tool", "spare kit; forty in stock\nfilter; nine in stock")])
def a_tool_whose_artifact_is_no_document(config):
    @tool(response_format="content_and_artifact")
    def stock(item: str):
        """Look into the stock."""
        return "spare kit; forty in stock\nfilter; nine in stock", {"rows": [["spare kit", 40], ["filter", 9]]}

    agent_with(search_tool(), stock, script=[calls(search("pump"), ("stock", {"item": "kit"})), ANSWER]).invoke(
        user_says(QUESTION), config
    )


@program([PUMP], response=f"{ANSWER} [1]")
def a_stream_to_which_citations_are_added(config):
    def cite(tokens):
        yield from tokens
        yield " [1]"

    for _ in (rag_chain(retriever(PUMP)) | RunnableGenerator(cite)).stream(QUESTION, config):
        pass


@program([PUMP], background=[("tool", "It is the third of May, and the shop closes at six.")])
def a_tool_and_documents_in_a_text_of_the_programs_own(config):
    @tool
    def today() -> str:
        """Tell the day."""
        return "It is the third of May, and the shop closes at six."

    prompt = ChatPromptTemplate.from_template("{today}\n\n{context}\n\n{question}")
    given = {
        "today": RunnableLambda(lambda _: {}) | today,
        "context": retriever(PUMP) | join_texts,
        "question": RunnablePassthrough(),
    }
    (given | prompt | chat_model() | StrOutputParser()).invoke(QUESTION, config)


@program([PUMP], response="I cannot say anything about this, please call the service desk.")
def a_guard_behind_the_answer(config):
    guard = RunnableLambda(lambda _: "I cannot say anything about this, please call the service desk.")
    (rag_chain(retriever(PUMP)) | guard).invoke(QUESTION, config)


@program([PUMP], background=[("history", HOSE)], question="And what of the pump?")
def a_second_turn_beside_what_the_first_one_found(config):
    first = calls(search("hose"))
    history = [
        HumanMessage("Where do I get hoses?"),
        first,
        ToolMessage(HOSE, tool_call_id=first.tool_calls[0]["id"]),
        AIMessage("From the service desk in Lyon, that is."),
        HumanMessage("And what of the pump?"),
    ]
    search_agent(calls(search("pump")), ANSWER).invoke({"messages": history}, config)
