"""What a record says of an answer's steps: tools, messages, rerankers, errors."""

from __future__ import annotations

from li_agents import agent, ask, concludes, reasoning_agent, thinks
from li_model import calls
from li_programs import ANSWER, QUESTION, engine, engine_tool, retriever
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import FunctionTool

FINAL = "Three."


def add(first: int, second: int) -> int:
    """Adds two numbers."""
    return first + second


ADD = FunctionTool.from_defaults(add)


async def test_an_engine_that_is_a_tool_has_its_steps_inside(captured, model):
    model.says(calls("search", input="harp"), ANSWER, FINAL)
    await ask(agent(engine_tool("search")), QUESTION)

    record = captured.record()
    assert [call.name for call in record.tool_calls] == ["search"]
    assert [found.within for found in record.retrievals] == [0]
    assert [model.within for model in record.generations] == [None, 0, None]


async def test_agents_are_told_from_engines_and_named_as_they_are(captured, model):
    model.says(FINAL)
    await ask(agent(name="adder"), "?")
    await ask(agent(), "?")
    await ask(AgentWorkflow(agents=[agent(name="adder")]), "?")
    engine("cello").query(QUESTION)
    model.says(thinks("add", '{"first": 1, "second": 2}'), concludes(FINAL))
    await ask(reasoning_agent(ADD), "?")

    assert [(record.name, record.is_agent) for record in captured.records()] == [
        ("adder", True),
        ("FunctionAgent", True),
        ("AgentWorkflow", True),
        ("RetrieverQueryEngine", False),
        ("ReActAgent", True),
    ]


def test_a_reranker_is_a_step_and_other_postprocessors_are_none(captured, model):
    model.says("Doc: 2, Relevance: 9\nDoc: 1, Relevance: 3", ANSWER)
    postprocessors = [SimilarityPostprocessor(), LLMRerank(top_n=1)]
    RetrieverQueryEngine.from_args(retriever("cello", "harp"), node_postprocessors=postprocessors).query(QUESTION)

    (reranking,) = captured.record().rerankings
    assert (reranking.name, reranking.query, reranking.top_k) == ("LLMRerank", QUESTION, 1)
    assert [document.id for document in reranking.given] == ["cello", "harp"]
    assert [(document.id, document.score) for document in reranking.contexts] == [("harp", 9.0)]
