"""An agentic RAG graph with memory and a person's review, scored: python examples/agentic_rag_graph.py.

The agent searches a handbook, grades what it found, asks in other words if that does not help, and drafts an answer. A
person accepts the draft or writes a better one: the graph stops there, and a second request resumes it. Every request has a
handler of its own, as in a web service.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Checkpointer, Command, interrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import ragspan
from ragspan_langchain import RagspanCallbackHandler

HANDBOOK = [
    "Gamma sends invoices by registered mail.",
    "Gamma accepts complaints by telephone only.",
    "Beta settles card payments after midnight.",
    "Beta refunds a cancelled order within ten days.",
]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{5,}", text.lower()))


class Handbook(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        best = sorted(HANDBOOK, key=lambda passage: len(words(passage) & words(query)), reverse=True)
        return [Document(passage) for passage in best[:2]]


class Clerk(BaseChatModel):
    """Your model, such as ChatOpenAI(model="gpt-4o-mini"); this one finds the sentence that has the question's words."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self.bind(tool=tools[0].name)

    def _generate(self, messages: list[Any], *_: Any, tool: str | None = None, **__: Any) -> ChatResult:
        said = messages[-1].text
        if tool is not None:
            call = {"name": tool, "args": {"query": said}, "id": f"call-{len(messages)}"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])
        task, _, text = said.partition(": ")
        question, _, passages = text.partition("\n")
        best = max(passages.splitlines(), key=lambda line: len(words(line) & words(question)), default="")
        lines = {
            "Grade": "yes" if words(best) & words(question) else "no",
            "Rewrite": "When are card payments settled?",
            "Answer": best,
        }
        return ChatResult(generations=[ChatGeneration(message=AIMessage(lines[task]))])


model = Clerk()
search = create_retriever_tool(Handbook(), "search_handbook", "Search the handbook of Beta and Gamma.")


def last_question(messages: Sequence[AnyMessage]) -> str:
    return next(message.text for message in reversed(messages) if isinstance(message, HumanMessage))


def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [model.bind_tools([search]).invoke(state["messages"])]}


def grade(state: MessagesState) -> Literal["draft", "rewrite"]:
    question, found = last_question(state["messages"]), state["messages"][-1].text
    return "draft" if model.invoke(f"Grade: {question}\n{found}").text == "yes" else "rewrite"


def rewrite(state: MessagesState) -> dict[str, Any]:
    better = model.invoke(f"Rewrite: {last_question(state['messages'])}")
    return {"messages": [HumanMessage(better.text)]}


def draft(state: MessagesState) -> dict[str, Any]:
    question, found = last_question(state["messages"]), state["messages"][-1].text
    return {"messages": [model.invoke(f"Answer: {question}\n{found}")]}


def review(state: MessagesState) -> dict[str, Any]:
    """Wait for a person, who accepts the draft or edits it."""
    written = state["messages"][-1]
    decision = interrupt({"draft": written.text})
    return {"messages": [AIMessage(decision["text"], id=written.id)] if decision["type"] == "edit" else []}


def agentic_rag(checkpointer: Checkpointer) -> Any:
    graph = StateGraph(MessagesState)
    for node in (ask, rewrite, draft, review):
        graph.add_node(node)
    graph.add_node("search", ToolNode([search]))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "search")
    graph.add_conditional_edges("search", grade)
    graph.add_edge("rewrite", "ask")
    graph.add_edge("draft", "review")
    graph.add_edge("review", END)
    return graph.compile(checkpointer=checkpointer)


def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    trace.set_tracer_provider(provider)
    graph = agentic_rag(InMemorySaver())

    def request(given: Any) -> str:
        config: RunnableConfig = {
            "callbacks": [RagspanCallbackHandler()],
            "configurable": {"thread_id": "a conversation"},
        }
        state = graph.invoke(given, config)
        return str(state["messages"][-1].text)

    request({"messages": [("user", "How soon do I have my money from Visa?")]})
    print(request(Command(resume={"type": "accept"})))
    request({"messages": [("user", "And how soon are refunds for a cancelled order?")]})
    print(request(Command(resume={"type": "edit", "text": "Within ten days."})))

    ragspan.default_engine().flush(timeout=10)  # a server need not: scores follow in the background, and at exit


if __name__ == "__main__":
    main()
