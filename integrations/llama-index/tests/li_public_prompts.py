"""Public programs of LlamaIndex that lay out prompts themselves, or are chats, agents and workflows."""

from __future__ import annotations

import json

from li_agents import agent, ask, concludes, reasoning_agent, thinks
from li_chats import after, chat_engine
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
    engine_tool,
    retriever,
    tools_know_their_run,
)
from li_public import program
from li_workflows import one_step
from llama_index.core import PromptTemplate, Settings, get_response_synthesizer
from llama_index.core.llms import ChatMessage
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.program import LLMTextCompletionProgram
from llama_index.core.prompts import RichPromptTemplate
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


@program([BARE, PASSAGES["harp"]], background=[("other", "Answer by these.\n-")])
def nodes_in_a_template_with_a_loop():
    template = RichPromptTemplate(
        "Answer by these.\n{% for each in nodes %}\n- {{ each.text }}\n{% endfor %}\nQuestion: {{ question }}"
    )

    def answer(query):
        return Settings.llm.complete(template.format(nodes=retriever().retrieve(query), question=query)).text

    by_hand(answer).query(QUESTION)


@program([BARE], background=[("other", '[{"id": "cello", "score": 1.0, "text": "')])
def nodes_as_json():
    def answer(query):
        rows = [
            {"id": each.node_id, "score": each.score, "text": each.text} for each in retriever("cello").retrieve(query)
        ]
        return ask_model(f"{json.dumps(rows)}\n\n{query}")

    by_hand(answer).query(QUESTION)


@program(["Title: instruments\nSays: The cello has four strings and is played sitting down."])
def nodes_with_a_layout_of_their_own():
    own = TextNode(
        id_="c",
        text=BARE,
        metadata={"title": "instruments"},
        text_template="{metadata_str}\nSays: {content}",
        metadata_template="Title: {value}",
    )
    engine_over(FixedRetriever([NodeWithScore(node=own, score=0.5)])).query(QUESTION)


class Answered(BaseModel):
    """An answer with the passage that it rests on."""

    answer: str
    quote: str


@program(
    [BARE],
    '{"answer": "Four.", "quote": "four strings"}',
    response='{"answer":"Four.","quote":"four strings"}',
    background=[
        ("other", "Here's a JSON schema to follow:"),
        ("other", "Output a valid JSON object but do not repeat the schema."),
    ],
)
def an_object_that_a_text_is_parsed_into():
    def answer(query):
        asked = LLMTextCompletionProgram.from_defaults(
            output_cls=Answered, prompt_template_str="Context:\n{context}\n\nQuestion: {query}"
        )
        said = asked(context=retriever("cello").retrieve(query)[0].text, query=query)
        return said.model_dump_json()

    by_hand(answer).query(QUESTION)


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


@program([CELLO], "four strings cello", ANSWER)
def a_query_that_is_written_anew_before_the_search():
    def answer(query):
        anew = ask_model(f"Write a query for: {query}")
        nodes = retriever("cello").retrieve(anew)
        return str(get_response_synthesizer().synthesize(query, nodes))

    by_hand(answer).query(QUESTION)


@program([BARE], "Das Cello hat vier Saiten, sagt die Quelle.", ANSWER, background=[("other", "Antworte.")])
def an_answer_that_is_translated_back():
    def answer(query):
        context = retriever("cello").retrieve(query)[0].text
        german = ask_model(f"Antworte.\n{context}\n{query}")
        return ask_model(f"Translate into English:\n{german}")

    by_hand(answer).query(QUESTION)


@program([CELLO], question="And how is the cello played?")
def a_chat_with_a_cutoff_and_a_history():
    chat = chat_engine("context", node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.1)])
    chat.chat("And how is the cello played?", chat_history=after("Hello.", "The harp is played standing, as I said."))


@program([CELLO], calls("search", input=QUESTION), ANSWER)
async def a_tool_whose_answer_is_given_as_it_is():
    tool = engine_tool("search", "cello")
    tool.metadata.return_direct = True
    await ask(agent(tool), QUESTION)


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


@program([BARE], background=[("other", "Answer by this.")])
async def a_workflow_that_chats_with_a_system_message():
    async def answer(event):
        context = (await retriever("cello").aretrieve(event.query))[0].text
        messages = [ChatMessage(f"Answer by this.\n\n{context}", role="system"), ChatMessage(event.query, role="user")]
        return (await Settings.llm.achat(messages)).message.content

    await one_step(answer).run(query=QUESTION)


@program([BARE])
async def a_workflow_that_streams_its_words():
    async def answer(event):
        context = (await retriever("cello").aretrieve(event.query))[0].text
        said = ""
        async for each in await Settings.llm.astream_complete(f"{context}\n\n{event.query}"):
            said += each.delta or ""
        return said

    await one_step(answer).run(query=QUESTION)
