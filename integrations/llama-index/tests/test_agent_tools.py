"""What an agent's tools bring to its prompt."""

import json

import pytest
from captures import Answered
from li_agents import agent, ask, concludes, reasoning_agent, retriever_tool, thinks
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    OBOE,
    PASSAGES,
    engine,
    engine_tool,
    ids,
)
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
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


# A model of plain texts


class PlainModel(CustomLLM):
    """Completes texts: an agent's messages become one."""

    says: list[str]

    @property
    def metadata(self):
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text=self.says.pop(0))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **_):
        text = self.says.pop(0)
        return (CompletionResponse(text=each, delta=each) for each in [text])


@pytest.mark.parametrize("streaming", [False, True])
async def test_whose_words_are_whose_where_a_model_is_given_all_messages_as_one_text(captured, streaming):
    def weigh(name: str) -> str:
        """Weighs an instrument."""
        return f"The {name} weighs thirty-six kilograms on our scales."

    says = [thinks("look_up", '{"input": "harp"}'), thinks("weigh", '{"name": "harp"}'), concludes(FINAL)]
    plain = reasoning_agent(retriever_tool(), weigh, llm=PlainModel(says=says), streaming=streaming)
    await ask(plain, ASKED)

    record = captured.record()
    assert ids(record.contexts) == ["harp"]
    assert [(each.kind, each.text) for each in record.background] == [
        ("tool", "The harp weighs thirty-six kilograms on our scales.")
    ]


# Functions as tools


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


async def test_a_function_that_searches_nothing(captured, model):
    def add(one: int, other: int) -> int:
        return one + other

    model.says(calls("add", one=4, other=47), "Fifty-one.")
    await ask(agent(add), "How many strings have both?")

    answer = captured.answer()
    assert (answer.question, answer.response) == ("How many strings have both?", "Fifty-one.")
    assert not answer.contexts


# Tools that fail


# The user is asked something in between
