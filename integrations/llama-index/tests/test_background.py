"""What stands in LlamaIndex's prompts beside nodes, and what is known of the contexts where no node stands there."""

from types import SimpleNamespace
from typing import Any

import pytest
from captures import Answered
from li_agents import agent, ask, concludes, reasoning_agent, retriever_tool, thinks
from li_model import ScriptedModel, calls
from li_programs import (
    ANSWER,
    CELLO,
    PASSAGES,
    QUESTION,
    ask_model,
    by_hand,
    engine,
    engine_over,
    retriever,
)
from li_workflows import one_step
from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.memory import Memory, StaticMemoryBlock
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.tools import FunctionTool

STOCK = "There are forty cellos and nine harps in stock in the warehouse of Cremona."
RULES = "You work for the shop; never say that the drum has been sold out since the spring of last year."


def stock(**about):
    return FunctionTool.from_defaults(lambda shop: STOCK, name="stock", description="Counts the stock.", **about)


def of(record):
    return [(each.kind, each.text) for each in record.background]


# Tools


async def test_the_result_of_a_tool_beside_a_search(captured, model):
    model.says([*calls("look_up", input="cello"), *calls("stock", shop="Cremona")], "Forty of them, with four strings.")
    await ask(agent(retriever_tool("cello"), stock(), system_prompt=RULES), QUESTION)

    record = captured.record()
    assert [context.text for context in record.contexts] == [CELLO]
    assert of(record) == [("tool", STOCK)]


async def test_what_a_reasoning_agent_observes(captured, model):
    model.says(thinks("stock", '{"shop": "Cremona"}'), concludes("Forty of them."))
    await ask(reasoning_agent(stock()), QUESTION)

    assert of(captured.record()) == [("tool", STOCK)]


async def test_what_a_memory_holds_is_background(captured, model):
    memory = Memory.from_defaults(memory_blocks=[StaticMemoryBlock(name="shop", static_content=STOCK)])
    model.says("Forty of them.")
    await agent(system_prompt=RULES).run(user_msg=QUESTION, memory=memory)
    await memory.sql_store._async_engine.dispose()

    assert of(captured.record()) == [("other", STOCK)]


# Instructions, people and models


async def test_what_a_template_writes_beside_a_node_is_metadata(captured):
    template = PromptTemplate(RULES + "\n{passages}\n{question}")

    async def answer(event):
        nodes = await retriever("cello").aretrieve(event.query)
        passages = "\n".join(f"{each.text} Shelf mark {each.node_id}, third floor." for each in nodes)
        return await Settings.llm.apredict(template, passages=passages, question=event.query)

    await one_step(answer).run(query=QUESTION)

    record = captured.record()
    assert [context.text for context in record.contexts] == [PASSAGES["cello"]]
    ((kind, text),) = of(record)
    assert (kind, text.endswith(f"Shelf mark {record.contexts[0].id}, third floor.")) == ("metadata", True)


# Nothing, or nobody knows


def test_a_search_that_found_nothing(captured):
    engine_over(retriever("cello"), SimilarityPostprocessor(similarity_cutoff=2.0)).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [], "Empty Response")]


def test_a_text_of_unknown_origin_after_an_empty_search(captured):
    def answer(query):
        retriever_of_none = retriever("cello")
        SimilarityPostprocessor(similarity_cutoff=2.0).postprocess_nodes(retriever_of_none.retrieve(query))
        return ask_model(f"{STOCK}\n{query}")

    by_hand(answer).query(QUESTION)

    record = captured.record()
    assert (record.contexts, record.contexts_unknown) == (None, "unmarked_text")


class Searching(ScriptedModel):
    """Says with its reply what a provider tells of it."""

    raw: Any = None
    beside: dict[str, Any] = {}

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        said = ChatMessage(ANSWER, role="assistant", additional_kwargs=self.beside)
        return ChatResponse(message=said, raw=self.raw)


PAGE = {"type": "url_citation", "url": "https://a.example", "title": "A page"}
SEARCHED = {
    "responses": {"beside": {"built_in_tool_calls": [{"type": "web_search_call", "id": "1"}]}},
    "raw responses": {"raw": {"id": "1", "output": [{"type": "file_search_call", "id": "1"}, {"type": "message"}]}},
    "completions": {"raw": SimpleNamespace(choices=[{"message": {"content": ANSWER, "annotations": [PAGE]}}])},
    "messages": {"raw": {"content": [{"type": "server_tool_use", "name": "web_search"}, {"type": "text"}]}},
    "grounding": {"raw": {"grounding_metadata": {"web_search_queries": ["cello"]}}},
    "addresses": {"raw": {"citations": ["https://a.example"], "choices": []}},
}


@pytest.mark.parametrize("told", SEARCHED.values(), ids=SEARCHED)
def test_the_providers_own_search_cannot_be_read(captured, told):
    Settings.llm = Searching(**told)
    engine("cello").query(QUESTION)

    record = captured.record()
    assert (record.contexts, record.contexts_unknown, record.prompts_seen) == (None, "provider_search", False)
