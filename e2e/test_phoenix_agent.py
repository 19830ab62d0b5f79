"""The trace of an agent, as a person sees it in Phoenix."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import create_retriever_tool, tool
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from application import Application
from backends.server import eventually
from phoenix_screen import PhoenixScreen
from ragspan_langchain import RagspanCallbackHandler
from traffic import LOANS, SCRIPT, FoundByLangChain

PROJECT = "librarian"
SECONDS = 60.0
ASKED = SCRIPT[0]
NAMES = ["invoke_agent librarian", "chat Librarian", "retrieval FoundByLangChain", "execute_tool free_copies"]


class Librarian(GenericFakeChatModel):
    """Plays its script, some of it calls of tools."""

    def bind_tools(self, tools, **_):
        return self


@tool
def free_copies(title: str) -> int:
    """Says how many copies are not lent."""
    return len(title)


@pytest.fixture(scope="module")
def answer(phoenix):
    """The id of the answer's span, once Phoenix has all of it."""
    application = Application(
        OTLPSpanExporter(f"{phoenix.url}/v1/traces"), resource={"openinference.project.name": PROJECT}
    )
    search = create_retriever_tool(
        FoundByLangChain(passages=ASKED.passages), "search", "Searches.", response_format="content_and_artifact"
    )
    calls = [
        {"name": "search", "args": {"query": "loans"}, "id": "call-1", "type": "tool_call"},
        {"name": "free_copies", "args": {"title": "Ulysses"}, "id": "call-2", "type": "tool_call"},
    ]
    model = Librarian(messages=iter([AIMessage("", tool_calls=calls), AIMessage(ASKED.response)]))
    agent = create_agent(model, [search, free_copies], name="librarian", system_prompt="Be brief.")
    agent.invoke(
        {"messages": [("user", ASKED.question)]}, {"callbacks": [RagspanCallbackHandler(sink=application.engine)]}
    )
    (scored,) = application.scored()
    application.close()
    eventually(lambda: len(phoenix.spans(PROJECT)), until=(5).__eq__, seconds=SECONDS, what="all five spans")
    return f"{scored.span.span_id:016x}"


@pytest.fixture
def shown(screen, phoenix, answer):
    screen.resize(width=2000, height=900)
    return PhoenixScreen(screen, phoenix)


def test_each_step_is_of_its_kind(phoenix, answer):
    kinds = sorted((span["name"], span["span_kind"]) for span in phoenix.spans(PROJECT))

    assert kinds == [
        ("chat Librarian", "LLM"),
        ("chat Librarian", "LLM"),
        ("execute_tool free_copies", "TOOL"),
        ("invoke_agent librarian", "AGENT"),
        ("retrieval FoundByLangChain", "RETRIEVER"),
    ]


def test_the_tree_shows_the_agent_and_its_steps(shown, answer):
    shown.open_trace(answer)

    eventually(shown.tree, until=lambda text: all(name in text for name in NAMES), seconds=SECONDS, what="all steps")
    shown.picture_of_trace("phoenix-agent")


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("chat Librarian", ["Be brief.", ASKED.question, "search", "free_copies"]),
        ("execute_tool free_copies", ["Ulysses", "7"]),
        ("retrieval FoundByLangChain", ["loans", LOANS]),
    ],
)
def test_a_step_shows_what_went_in_and_came_out(phoenix, shown, answer, name, texts):
    first = min((span for span in phoenix.spans(PROJECT) if span["name"] == name), key=lambda span: span["start_time"])
    shown.open_trace(first["context"]["span_id"])

    eventually(
        shown.details, until=lambda text: all(each in text for each in texts), seconds=SECONDS, what="the step's texts"
    )
