"""Agents with middleware, memory and handoffs."""

from __future__ import annotations

from typing import Annotated

import pytest
from agent_programs import calls, scripted_model, search, search_agent, search_tool, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    after_model,
    before_model,
    dynamic_prompt,
    wrap_model_call,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    BrokenModel,
    TopicRetriever,
    chat_model,
    documents,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


# Middleware that brings documents


def test_a_prompt_that_searches_the_store_shows_no_document(captured):
    @dynamic_prompt
    def prompt(request):
        return "Use:\n" + join_texts(look_up(request.state["messages"][-1].text))

    create_agent(scripted_model(ANSWER), [], middleware=[prompt]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_prompt_that_calls_a_retriever(captured):
    @dynamic_prompt
    def prompt(request):
        return "Use:\n" + join_texts(TopicRetriever().invoke(request.state["messages"][-1].text))

    create_agent(scripted_model(ANSWER), [], middleware=[prompt]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_call_that_is_wrapped_to_add_documents(captured):
    @wrap_model_call
    def add_documents(request, handler):
        found = TopicRetriever().invoke(request.messages[-1].text)
        return handler(request.override(messages=[HumanMessage(join_texts(found)), *request.messages]))

    create_agent(scripted_model(ANSWER), [], middleware=[add_documents]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_the_users_words_before_they_were_rewritten(captured):
    """A step before the model puts the documents into the user's message and into the state."""

    class DocumentsMiddleware(AgentMiddleware):
        class state_schema(MessagesState):
            found: list

        def before_model(self, state, runtime):
            last = state["messages"][-1]
            found = look_up(last.text)
            rewritten = f"{last.text}\n\nAnswer from this:\n{join_texts(found)}"
            return {"messages": [last.model_copy(update={"content": rewritten})], "found": found}

    agent = create_agent(scripted_model(ANSWER), [], middleware=[DocumentsMiddleware()])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Middleware that changes the course


def test_a_guard_before_the_model(captured):
    @before_model(can_jump_to=["end"])
    def refuse(state, runtime):
        return {"messages": [AIMessage("I must not talk about this.")], "jump_to": "end"}

    create_agent(scripted_model(), [], middleware=[refuse]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [], "I must not talk about this.")]


def test_a_guard_after_the_model(captured):
    """What the caller gets is the guard's sentence; the documents reached the prompt all the same."""

    @after_model
    def replace(state, runtime):
        last = state["messages"][-1]
        if last.tool_calls:
            return None
        return {"messages": [AIMessage("I must not talk about this.", id=last.id)]}

    search_agent(calls(search("pump")), ANSWER, middleware=[replace]).invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], "I must not talk about this.")]


def test_a_limit_on_model_calls(captured):
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    search_agent(calls(search("pump")), ANSWER, middleware=[limit]).invoke(user_says(QUESTION), captured.config)

    answer = captured.answer()
    assert (answer.question, answer.status) == (QUESTION, "complete")
    assert "limit" in answer.response


class BrokenAgentModel(BrokenModel):
    """Takes tools, and fails."""

    def bind_tools(self, tools, **kwargs):
        return self


def test_a_fallback_model(captured):
    fallback = ModelFallbackMiddleware(scripted_model(calls(search("pump")), ANSWER))
    agent = create_agent(BrokenAgentModel(), [search_tool()], middleware=[fallback])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_history_that_a_model_summarises(captured):
    """Nothing was found for this turn. Whether that was observed the contract leaves open: the prompt shows no search."""
    summary = SummarizationMiddleware(
        model=chat_model("They spoke about the pump and its three years."),
        trigger=("messages", 4),
        keep=("messages", 1),
    )
    agent = search_agent(
        calls(search("pump")), ANSWER, "You are welcome.", middleware=[summary], checkpointer=InMemorySaver()
    )
    for question in (QUESTION, "Thank you!"):
        agent.invoke(user_says(question), captured.thread())

    first, second = captured.answers()
    assert first == ON_THE_PUMP
    assert (second.question, second.response, second.status) == ("Thank you!", "You are welcome.", "complete")
    assert not second.contexts


# Memory


def test_documents_of_the_first_turn_are_history_in_the_second(captured):
    agent = search_agent(calls(search("pump")), ANSWER, "You are welcome.", checkpointer=InMemorySaver())
    for question in (QUESTION, "Thank you!"):
        agent.invoke(user_says(question), captured.thread())

    assert captured.answers() == [ON_THE_PUMP, Answered("Thank you!", [], "You are welcome.")]


def test_each_turn_counts_what_it_found_itself(captured):
    script = [calls(search("pump")), ANSWER, calls(search("hose")), "From Lyon."]
    agent = search_agent(*script, checkpointer=InMemorySaver())
    for question in (QUESTION, "And the hoses?"):
        agent.invoke(user_says(question), captured.thread())

    assert captured.answers() == [ON_THE_PUMP, Answered("And the hoses?", [HOSE], "From Lyon.")]


def test_two_conversations_at_the_same_time(captured):
    agent = search_agent(calls(search("pump")), ANSWER, "You are welcome.", "Good day!", checkpointer=InMemorySaver())
    agent.invoke(user_says(QUESTION), captured.thread("a"))
    agent.invoke(user_says("Thank you!"), captured.thread("a"))
    agent.invoke(user_says("Hello!"), captured.thread("b"))

    assert captured.answers() == [
        ON_THE_PUMP,
        Answered("Thank you!", [], "You are welcome."),
        Answered("Hello!", None, "Good day!"),
    ]


# A person in the loop


def asking_agent(*script):
    approval = HumanInTheLoopMiddleware(interrupt_on={"search_manual": True})
    return search_agent(*script, middleware=[approval], checkpointer=InMemorySaver())


def test_a_tool_call_that_a_person_approves(captured):
    agent = asking_agent(calls(search("pump")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.thread())

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert not waiting.contexts

    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_a_tool_call_that_a_person_changes(captured):
    agent = asking_agent(calls(search("hose")), ANSWER)
    agent.invoke(user_says(QUESTION), captured.thread())
    captured.answers()
    edited = {"type": "edit", "edited_action": {"name": "search_manual", "args": {"query": "pump"}}}
    agent.invoke(Command(resume={"decisions": [edited]}), captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_a_tool_call_that_a_person_rejects(captured):
    agent = asking_agent(calls(search("pump")), "I may not search.")
    agent.invoke(user_says(QUESTION), captured.thread())
    captured.answers()
    agent.invoke(Command(resume={"decisions": [{"type": "reject", "message": "No."}]}), captured.thread())

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "I may not search.", "complete")
    assert not answer.contexts


def test_documents_found_before_an_interruption_count_for_the_resumed_request(captured):
    @tool
    def send_letter(text: str) -> str:
        """Send a letter."""
        return "Sent."

    approval = HumanInTheLoopMiddleware(interrupt_on={"send_letter": True})
    script = [calls(search("pump")), calls(("send_letter", {"text": "Three years."})), "I sent it: three years."]
    agent = create_agent(
        scripted_model(*script), [search_tool(), send_letter], middleware=[approval], checkpointer=InMemorySaver()
    )
    agent.invoke(user_says(QUESTION), captured.thread())

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")

    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), captured.thread())

    assert captured.answers() == [Answered(QUESTION, [PUMP], "I sent it: three years.")]


# Handoffs


def handoff(agent_name):
    @tool(f"transfer_to_{agent_name}")
    def transfer(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand the conversation over."""
        message = ToolMessage("Handed over.", tool_call_id=tool_call_id)
        return Command(goto=agent_name, graph=Command.PARENT, update={"messages": [message]})

    return transfer


def desk_and_workshop(last_words=ANSWER):
    """Two agents in one graph; the desk hands over to the workshop, which searches."""
    call = calls(("transfer_to_workshop", {}))
    desk = create_agent(scripted_model(call), [handoff("workshop")], name="desk")
    workshop = search_agent(calls(search("pump")), last_words, name="workshop")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", call_and_keep(desk, call), destinations=("workshop",))
    graph.add_node("workshop", workshop)
    graph.add_edge(START, "desk")
    return graph.compile()


def call_and_keep(agent, call):
    """The tool's command updates the parent's state, which must then hold the call that the tool answers."""

    def node(state):
        return Command(
            goto="workshop",
            update={
                "messages": [call, ToolMessage("Handed over.", tool_call_id=call.tool_calls[0]["id"])],
            },
        )

    return node


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_handoff_to_an_agent_that_searches(captured, call):
    list(getattr(desk_and_workshop(), call)(user_says(QUESTION), captured.config))

    assert captured.answers() == [ON_THE_PUMP]


def test_a_handoff_by_a_command_to_the_parent_graph(captured):
    desk = create_agent(scripted_model(calls(("transfer_to_workshop", {}))), [handoff("workshop")], name="desk")
    workshop = search_agent(calls(search("pump")), ANSWER, name="workshop")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", desk, destinations=("workshop",))
    graph.add_node("workshop", workshop)
    graph.add_edge(START, "desk")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_supervisor_that_asks_two_workers(captured):
    """Each worker searches and reports; the supervisor's last words are the answer."""

    def worker(topic, report):
        agent = search_agent(calls(search(topic)), report, name=topic)

        @tool(f"ask_{topic}")
        def ask(task: str) -> str:
            """Ask the worker."""
            return agent.invoke(user_says(task))["messages"][-1].text

        return ask

    supervisor = create_agent(
        scripted_model(
            calls(("ask_pump", {"task": "How long is the warranty?"})),
            calls(("ask_hose", {"task": "Where do hoses come from?"})),
            "Three years, and from Lyon.",
        ),
        [worker("pump", "The warranty is three years."), worker("hose", "The hoses come from Lyon.")],
    )
    supervisor.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], "Three years, and from Lyon.")]


def test_documents_that_an_earlier_node_put_into_a_message(captured):
    """A node searches a store and hands text and documents on as a tool message of its own making."""

    def find(state: MessagesState):
        found = look_up(state["messages"][-1].text)
        call = calls(search("pump"))
        call_id = call.tool_calls[0]["id"]
        return {"messages": [call, ToolMessage(join_texts(found), tool_call_id=call_id, artifact=documents(PUMP))]}

    graph = StateGraph(MessagesState)
    graph.add_node("find", find)
    graph.add_node("answer", search_agent(ANSWER))
    graph.add_edge(START, "find")
    graph.add_edge("find", "answer")
    graph.compile().invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]
