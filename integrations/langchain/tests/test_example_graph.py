"""The example's graph, called in every way: search, rewriting, drafts, a person's review, and the next turn."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from captures import Answered
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

EXAMPLE = Path(__file__).parents[3] / "examples" / "agentic_rag_graph.py"
FIRST = "How soon do I have my money from Visa?"
SECOND = "And how soon are refunds for a cancelled order?"
INVOICES = "Gamma sends invoices by registered mail."
SETTLED = "Beta settles card payments after midnight."
REFUNDED = "Beta refunds a cancelled order within ten days."
ACCEPTED = Command(resume={"type": "accept"})
EDITED = Command(resume={"type": "edit", "text": "Within ten days."})


def asks(question):
    return {"messages": [("user", question)]}


def waiting(question, contexts):
    return Answered(question, contexts, None, "interrupted")


CONVERSATION = [asks(FIRST), ACCEPTED, asks(SECOND), EDITED]
ANSWERS = [
    waiting(
        FIRST, [SETTLED, INVOICES]
    ),  # those of the question in other words, the only ones that the draft was made from
    Answered(FIRST, [SETTLED, INVOICES], SETTLED),
    waiting(SECOND, [REFUNDED, INVOICES]),
    Answered(SECOND, [REFUNDED, INVOICES], "Within ten days."),
]


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("agentic_rag_graph", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def graph(example):
    return example.agentic_rag(InMemorySaver())


@pytest.fixture(params=["one handler", "a handler for each request"])
def config(request, captured, new_captures):
    """What to call the graph with."""

    def make(thread_id="a conversation"):
        captures = captured if request.param == "one handler" else new_captures(captured.sink)
        return captures.thread(thread_id)

    return make


@pytest.mark.parametrize("options", [None, {}, {"stream_mode": "values"}, {"stream_mode": ["messages", "updates"]}])
def test_a_conversation(graph, config, captured, options):
    for given in CONVERSATION:
        if options is None:
            graph.invoke(given, config())
        else:
            list(graph.stream(given, config(), **options))

    assert captured.answers() == ANSWERS


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="before Python 3.11 langgraph cannot interrupt in asynchronous code"
)
@pytest.mark.parametrize("options", [None, {}, {"stream_mode": "messages"}, {"version": "v2"}])
async def test_a_conversation_in_asynchronous_code(graph, config, captured, options):
    for given in CONVERSATION:
        if options is None:
            await graph.ainvoke(given, config())
            continue
        stream = graph.astream_events if "version" in options else graph.astream
        async for _ in stream(given, config(), **options):
            pass

    assert captured.answers() == ANSWERS
