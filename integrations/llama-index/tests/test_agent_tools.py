"""What an agent's tools bring to its prompt."""

import json

import pytest
from captures import Answered
from li_agents import agent, ask, retriever_tool
from li_model import calls
from li_programs import ANSWER, CELLO, HARP, OBOE, PASSAGES, engine, engine_tool
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool

ASKED = "Which has more strings, and why?"
FINAL = "The harp, for it has no fingerboard."


def direct():
    """With `return_direct` the agent adds nothing."""
    return QueryEngineTool.from_defaults(engine("harp"), name="search", return_direct=True)


def cutting():
    cutoff = SimilarityPostprocessor(similarity_cutoff=0.95)
    return retriever_tool("cello", "harp", node_postprocessors=[cutoff])


LOOKS_UP_HARP, LOOKS_UP_CELLO = calls("look_up", input="harp"), calls("look_up", input="cello")
SEARCHES = {
    "one": ([retriever_tool], [LOOKS_UP_CELLO, FINAL], [CELLO]),
    "passages left out by the tool": ([cutting], [calls("look_up", input="?"), FINAL], [CELLO]),
    "one after another": ([retriever_tool], [LOOKS_UP_HARP, LOOKS_UP_CELLO, FINAL], [HARP, CELLO]),
    "at the same time": ([retriever_tool], [LOOKS_UP_HARP + LOOKS_UP_CELLO, FINAL], [HARP, CELLO]),
    "and an engine": (
        [retriever_tool, lambda: engine_tool("search")],
        [LOOKS_UP_HARP, calls("search", input="oboe"), ANSWER, FINAL],
        [OBOE, HARP],  # the engine's prompt came before the last one
    ),
    "in vain": ([retriever_tool], [calls("look_up", input="kazoo"), FINAL], []),
    # The tool reads the stream for the agent, in a thread of its own.
    "by an engine that streams": (
        [lambda: engine_tool("search", "harp", streaming=True)],
        [calls("search", input="harp"), ANSWER, FINAL],
        [HARP],
    ),
    "that answers for the agent": ([direct], [calls("search", input="harp"), FINAL], [HARP]),
}


@pytest.mark.parametrize(("tools", "said", "contexts"), SEARCHES.values(), ids=SEARCHES)
async def test_a_search(captured, model, tools, said, contexts):
    model.says(*said)
    await ask(agent(*(make() for make in tools)), ASKED)

    assert captured.answers() == [Answered(ASKED, contexts, FINAL)]


# Functions as tools


async def test_a_function_that_returns_nodes_without_scores_with_a_template_that_cannot_be_filled(captured, model):
    def shelf(query: str) -> list:
        """Looks on the shelf."""
        about = {"metadata": {"book": "instruments"}, "text_template": "{nothing}", "id_": "cello"}
        return [TextNode(text="The cello has four strings.", **about)]

    model.says(calls("shelf", query="cello"), FINAL)
    await ask(agent(FunctionTool.from_defaults(shelf)), ASKED)

    (context,) = captured.record().contexts
    assert (context.id, context.text, context.score) == ("cello", "The cello has four strings.", None)


@pytest.mark.parametrize("named", [True, False])
async def test_a_function_that_is_named_as_a_search_returns_documents(captured, model, monkeypatch, named):
    def handbook(query: str) -> str:
        """Looks it up in the handbook."""
        return json.dumps([{"text": PASSAGES["cello"], "id": "c-1"}, {"text": PASSAGES["harp"], "id": "h-1"}])

    if named:
        monkeypatch.setenv("RAGSPAN_RETRIEVAL_TOOLS", "handbook")
    model.says(calls("handbook", query="strings"), FINAL)
    await ask(agent(FunctionTool.from_defaults(handbook)), ASKED)

    contexts = captured.record().contexts
    assert [context.id for context in contexts or ()] == (["c-1", "h-1"] if named else [])
