"""Which field of a graph's state is the answer: small graphs in the shape of well-known programs."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

import pytest
from agent_programs import calls, scripted_model, sequence, user_says
from captures import Answered
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from pydantic import BaseModel
from rag_programs import ANSWER, PUMP, QUESTION, TopicRetriever, chat_model, join_texts
from rag_programs import rag_chain as answering_chain

REPORT = "All in all the pump is covered for three full years."


def says(text: str, prompt: Any = "Say something.") -> str:
    return chat_model(text).invoke(prompt).text


def search_for(text: str) -> str:
    return join_texts(TopicRetriever().invoke(text))


# Steps and a final field


class Act(BaseModel):
    response: str


class PlanState(TypedDict, total=False):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple[str, str]], operator.add]
    response: str


def replan_with_json(state):
    said = says(json.dumps({"action": {"response": REPORT}}), f"{state['past_steps']}")
    return {"response": json.loads(said)["action"]["response"]}


def replan_with_a_call(state):
    model = scripted_model(calls(("Act", {"response": REPORT}))).with_structured_output(Act)
    return {"response": model.invoke(f"{state['past_steps']}").response}


def replan_in_words(state):
    return {"response": says(REPORT, f"{state['past_steps']}")}


@pytest.mark.parametrize("replan", [replan_with_json, replan_with_a_call, replan_in_words])
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_plan_whose_steps_stay_in_the_state(captured, replan, call):
    def plan(state: PlanState):
        return {"plan": says("Find the manual.\nRead it.").split("\n")}

    def step(state: PlanState):
        return {"past_steps": [(state["plan"][0], says("The step found three years.", search_for("pump")))]}

    list(getattr(sequence(PlanState, plan, step, replan), call)({"input": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, [PUMP], REPORT)]


def test_a_text_that_is_made_of_the_others_whatever_its_name(captured):
    class State(TypedDict, total=False):
        topic: str
        opening: str
        body: str
        essay: str

    def write(state: State):
        opening, body = says("Once there was a pump."), says("It ran for years.")
        return {"opening": opening, "body": body, "essay": f"{opening}\n\n{body}"}

    sequence(State, write).invoke({"topic": "pumps"}, captured.config)

    assert captured.answer().response == "Once there was a pump.\n\nIt ran for years."


@pytest.mark.parametrize("call", ["invoke", "stream"])
@pytest.mark.parametrize("thinking", ["", "<think>Which years?</think>"])
def test_a_running_summary_beside_search_results(captured, call, thinking):
    class State(TypedDict, total=False):
        research_topic: str
        search_query: str
        web_research_results: Annotated[list[str], operator.add]
        sources_gathered: Annotated[list[str], operator.add]
        research_loop_count: int
        running_summary: str

    def query(state: State):
        return {"search_query": json.loads(says('{"query": "pump warranty years", "rationale": "asked"}'))["query"]}

    def research(state: State):
        return {"web_research_results": ["Source: a page"], "sources_gathered": ["* a page : b.example"]}

    def summarise(state: State):
        return {"running_summary": says(thinking + REPORT, str(state)).removeprefix(thinking), "research_loop_count": 1}

    def finish(state: State):
        return {"running_summary": f"## Summary\n{state['running_summary']}\n\n### Sources:\n* a page : b.example"}

    graph = sequence(State, query, research, summarise, finish)
    list(getattr(graph, call)({"research_topic": "Pumps"}, captured.config))

    summary = f"## Summary\n{REPORT}\n\n### Sources:\n* a page : b.example"
    assert captured.answer().response == summary


def test_a_list_of_partial_answers_is_the_answer_as_a_whole_where_there_is_no_other(captured):
    class State(TypedDict, total=False):
        question: str
        parts: list[str]

    def work(state: State):
        return {"parts": [says("The pump has three years."), says("The hose has one.")]}

    sequence(State, work).invoke({"question": QUESTION}, captured.config)

    assert json.loads(captured.answer().response) == ["The pump has three years.", "The hose has one."]


# A conversation and other fields


class DeskState(MessagesState, total=False):
    conversation_summary: str
    agent_answers: list[Any]
    rewritten_questions: list[str]
    next: str


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_partial_answers_beside_a_conversation(captured, call):
    def prepare(state: DeskState):
        return {
            "conversation_summary": says("They spoke about the warranty of pumps."),
            "rewritten_questions": [says("What is the warranty period of the pump?")],
        }

    def ask(state: DeskState):
        return {"agent_answers": [{"index": 0, "question": "q", "answer": says("Three years.", search_for("pump"))}]}

    def aggregate(state: DeskState):
        return {"messages": [AIMessage(says(REPORT, str(state["agent_answers"])))]}

    list(getattr(sequence(DeskState, prepare, ask, aggregate), call)(user_says(QUESTION), captured.config))

    assert captured.answers() == [Answered(QUESTION, [PUMP], REPORT)]


def test_a_summary_of_the_conversation_that_is_kept_for_the_next_turn(captured):
    class State(MessagesState, total=False):
        summary: str

    def talk(state: State):
        return {"messages": [chat_model(ANSWER).invoke(state["messages"])]}

    def summarise(state: State):
        old = [RemoveMessage(id=message.id) for message in state["messages"][:-2]]
        return {"summary": says("The user asks about a pump.", str(state["messages"])), "messages": old}

    sequence(State, talk, summarise).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


@pytest.mark.parametrize("name", ["answer", "response", "generation", "final_report", "finalAnswer", "final_output"])
def test_a_field_that_is_called_the_answer_beside_a_conversation(captured, name):
    def work(state):
        return {"messages": [chat_model("I have looked it up.").invoke("look up")], name: says(REPORT, "write")}

    graph = StateGraph(TypedDict("State", {"messages": Annotated[list[AnyMessage], add_messages], name: str}))
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answer().response == REPORT


# A model's words under the role of a person


def reply_as_text(text):
    return text


def reply_with_a_name(text):
    return HumanMessage(text, name="researcher")


def reply_with_a_heading(text):
    return HumanMessage(f"Researcher: {text}")


@pytest.mark.parametrize("reply", [reply_as_text, reply_with_a_name, reply_with_a_heading])
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_conversation_that_ends_with_a_models_words(captured, reply, call):
    def work(state: DeskState):
        return {"messages": [reply(says(REPORT, search_for("pump")))]}

    def supervise(state: DeskState):
        return {"next": "__end__"}

    list(getattr(sequence(DeskState, work, supervise), call)(user_says(QUESTION), captured.config))

    (answer,) = captured.answers()
    assert (answer.question, answer.contexts) == (QUESTION, [PUMP])
    assert answer.response.removeprefix("Researcher: ") == REPORT


def test_the_users_own_last_words_are_no_answer(captured):
    def route(state: DeskState):
        says("yes", state["messages"])
        return {"next": "__end__"}

    sequence(DeskState, route).invoke(user_says(QUESTION), captured.config)

    assert captured.answer().response is None


# Fields in chains


@pytest.mark.parametrize("name", ["data", "output", "result"])
def test_an_answer_one_level_down(captured, name):
    program = answering_chain() | RunnableLambda(lambda text: {name: {"answer": text, "pages": [1]}})
    program.invoke(QUESTION, captured.config)

    assert captured.answer().response == ANSWER


def test_an_object_in_the_answers_field_is_the_answer_as_it_is(captured):
    program = answering_chain() | RunnableLambda(lambda text: {"answer": {"years": 3, "reason": "It says so."}})
    program.invoke(QUESTION, captured.config)

    assert json.loads(captured.answer().response) == {"years": 3, "reason": "It says so."}
