"""Public programs of LlamaIndex that lay out prompts themselves, or are chats, agents and workflows."""

from __future__ import annotations

import json

from li_agents import agent, ask, concludes, reasoning_agent, retriever_tool, thinks
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    PASSAGES,
    QUESTION,
    FixedRetriever,
    ask_model,
    by_hand,
    engine,
    engine_over,
    found,
    retriever,
    tools_know_their_run,
)
from li_public import program
from li_workflows import one_step
from llama_index.core import PromptTemplate, Settings, get_response_synthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

BARE = PASSAGES["cello"]


@program([BARE], background=[("metadata", '<node id="cello">')])
def nodes_in_tags():
    template = PromptTemplate("Answer by these.\n{nodes}\n\nQuestion: {question}")

    def answer(query):
        nodes = "\n".join(
            f'<node id="{each.node_id}">\n{each.text}\n</node>' for each in retriever("cello").retrieve(query)
        )
        return Settings.llm.predict(template, nodes=nodes, question=query)

    by_hand(answer).query(QUESTION)


@program([BARE], background=[("other", '[{"id": "cello", "score": 1.0, "text": "')])
def nodes_as_json():
    def answer(query):
        rows = [
            {"id": each.node_id, "score": each.score, "text": each.text} for each in retriever("cello").retrieve(query)
        ]
        return ask_model(f"{json.dumps(rows)}\n\n{query}")

    by_hand(answer).query(QUESTION)


class Answered(BaseModel):
    """An answer with the passage that it rests on."""

    answer: str
    quote: str


@program(
    [BARE],
    calls("Answered", answer="Four.", quote="four strings"),
    response='{"answer":"Four.","quote":"four strings"}',
)
def an_object_that_a_function_is_called_with():
    template = PromptTemplate("Context:\n{context}\n\nQuestion: {query}")

    def answer(query):
        context = retriever("cello").retrieve(query)[0].text
        return Settings.llm.structured_predict(Answered, template, context=context, query=query).model_dump_json()

    by_hand(answer).query(QUESTION)


@program([CELLO], background=[])
def a_template_whose_variables_are_functions():
    def bullets(**given):
        return "\n\n".join(f"- {each}" for each in given["context_str"].split("\n\n\n"))

    template = PromptTemplate(
        "Context:\n{context_str}\nQuestion: {query_str}", function_mappings={"context_str": bullets}
    )
    engine("cello", text_qa_template=template).query(QUESTION)


@program([BARE], "Das Cello hat vier Saiten, sagt die Quelle.", ANSWER, background=[("other", "Antworte.")])
def an_answer_that_is_translated_back():
    def answer(query):
        context = retriever("cello").retrieve(query)[0].text
        german = ask_model(f"Antworte.\n{context}\n{query}")
        return ask_model(f"Translate into English:\n{german}")

    by_hand(answer).query(QUESTION)


@program([BARE], calls("search", query="cello"), ANSWER, marks=[tools_know_their_run])
async def a_function_that_searches_and_formats():
    def search(query: str) -> str:
        """Search."""
        return "\n\n".join(each.text for each in retriever("cello").retrieve(query))

    await ask(agent(FunctionTool.from_defaults(search)), QUESTION)


@program(
    [BARE],
    thinks("search", '{"query": "cello"}'),
    concludes(ANSWER),
    background=[("metadata", "Found one passage:")],
    marks=[tools_know_their_run],
)
async def a_reasoning_agent_with_a_function_that_searches():
    def search(query: str) -> str:
        """Search."""
        return "Found one passage:\n" + "\n\n".join(each.text for each in retriever("cello").retrieve(query))

    await ask(reasoning_agent(FunctionTool.from_defaults(search)), QUESTION)


@program([BARE], "yes", ANSWER)
async def a_workflow_that_grades_its_nodes():
    async def answer(event):
        nodes = await retriever("cello").aretrieve(event.query)
        kept = [each for each in nodes if "yes" in (await Settings.llm.acomplete(f"Relevant? {each.text}")).text]
        context = "\n".join(each.text for each in kept)
        return (await Settings.llm.acomplete(f"{context}\n\n{event.query}")).text

    await one_step(answer).run(query=QUESTION)


@program(
    ["Source 1:\nbook: instruments\n\nThe cello has four strings and is played sitting down.\n"],
    f"{ANSWER} [1]",
    response=f"{ANSWER} [1]",
)
async def a_workflow_that_makes_sources_of_nodes():
    async def answer(event):
        nodes = await retriever("cello").aretrieve(event.query)
        sources = [
            NodeWithScore(
                node=TextNode(text=f"Source {at}:\n{each.node.get_content(metadata_mode=MetadataMode.LLM)}\n"),
                score=each.score,
            )
            for at, each in enumerate(nodes, 1)
        ]
        return str(await get_response_synthesizer().asynthesize(event.query, sources))

    await one_step(answer).run(query=QUESTION)


@program([BARE], background=[("tool", "Forty cellos and nine harps are in stock in Cremona.")])
async def a_workflow_that_calls_a_tool_beside_its_search():
    async def answer(event):
        tool = FunctionTool.from_defaults(
            lambda: "Forty cellos and nine harps are in stock in Cremona.", name="stock", description="Counts."
        )
        stock = str(await tool.acall())
        context = (await retriever("cello").aretrieve(event.query))[0].text
        return (await Settings.llm.acomplete(f"{stock}\n\n{context}\n\n{event.query}")).text

    await one_step(answer).run(query=QUESTION)


@program(
    [CELLO],
    calls("look_up", input="strings"),
    ANSWER,
    background=[
        ("other", "{'customer': 'Maria Lopez plays in a quartet and has rented a cello since 2019', 'turn': 1}")
    ],
)
async def an_agent_whose_prompt_shows_its_state():
    state = {"customer": "Maria Lopez plays in a quartet and has rented a cello since 2019", "turn": 1}
    await ask(agent(retriever_tool("cello"), initial_state=state), QUESTION)


@program(
    [CELLO],
    thinks("look_up", '{"input": "strings"}'),
    concludes(ANSWER),
    background=[("other", "{'customer': 'Maria Lopez has rented a cello since 2019'}")],
)
async def a_reasoning_agent_whose_prompt_shows_its_state():
    state = {"customer": "Maria Lopez has rented a cello since 2019"}
    await ask(reasoning_agent(retriever_tool("cello"), initial_state=state), QUESTION)


@program(["name: cello\nstrings: four of gut", CELLO])
def a_node_of_metadata_alone():
    row = NodeWithScore(node=TextNode(metadata={"name": "cello", "strings": "four of gut"}), score=1.0)
    engine_over(FixedRetriever([row, *found("cello")])).query(QUESTION)
