"""Documents that callbacks do not show by themselves: given to `dispatch_custom_event`, or returned by a tool that is named."""

from __future__ import annotations

import json

import pytest
from agent_programs import calls, scripted_model, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from rag_programs import ANSWER, FILTER, MOTOR, PUMP, QUESTION, answer_chain, config_reaches_async_functions, documents

from ragspan_langchain import RagspanCallbackHandler

STORE = [PUMP, FILTER, MOTOR]


def searching(shown):
    """Searches a store of its own, puts the first two texts into the prompt, and shows what it found."""

    def search(question):
        dispatch_custom_event("found", shown)
        return {"context": "\n\n".join(STORE[:2]), "question": question}

    return RunnableLambda(search) | answer_chain()


@pytest.mark.parametrize(
    "shown",
    [
        documents(*STORE),
        {"documents": documents(*STORE), "seconds": 0.2},
        {"hits": [(document, 0.5) for document in documents(*STORE)]},
        [{"page_content": text, "metadata": {}} for text in STORE],
    ],
    ids=["a list", "a field", "with scores", "as dictionaries"],
)
def test_documents_in_a_custom_event_count_where_they_are_in_the_prompt(captured, shown):
    searching(shown).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, FILTER], ANSWER)]


@config_reaches_async_functions
async def test_an_asynchronous_custom_event(captured):
    async def search(question):
        await adispatch_custom_event("found", documents(PUMP))
        return {"context": PUMP, "question": question}

    await (RunnableLambda(search) | answer_chain()).ainvoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_a_custom_event_without_documents_is_not_noted(captured):
    class Counting(RagspanCallbackHandler):
        noted = 0

        def on_custom_event(self, name, data, *, run_id, **about):
            super().on_custom_event(name, data, run_id=run_id, **about)
            (log,) = {id(log): log for log in self.recorder.requests.live.values()}.values()
            Counting.noted = len(log.events)

    def progress(question):
        for done in range(50):
            dispatch_custom_event("progress", {"done": done, "text": "still searching"})
        return {"context": PUMP, "question": question}

    chain = RunnableLambda(progress) | answer_chain()
    chain.invoke(QUESTION, {"callbacks": [Counting(sink=captured.sink)]})

    assert 0 < Counting.noted < 10
    assert len(captured.sink.captures) == 1


def test_a_handler_that_is_switched_off_hears_of_no_custom_event(captured):
    captured.handler.enable(enabled=False)
    assert captured.handler.ignore_custom_event
    captured.handler.enable(enabled=True)
    assert not captured.handler.ignore_custom_event


# Tools that are searches


@tool
def handbook(query: str) -> str:
    """Looks it up in the handbook."""
    return json.dumps([{"text": PUMP, "id": "p-1"}, {"text": FILTER, "id": "p-2"}], indent=1)


def test_a_tool_that_is_named_is_a_search(captured, monkeypatch):
    monkeypatch.setenv("RAGSPAN_RETRIEVAL_TOOLS", "handbook")
    model = scripted_model(calls(("handbook", {"query": "warranty"})), ANSWER)
    create_agent(model, [handbook]).invoke(user_says(QUESTION), captured.config)

    record = captured.record()
    assert [(context.text, context.id) for context in record.contexts] == [(PUMP, "p-1"), (FILTER, "p-2")]
    assert [search.query for search in record.retrievals] == ["warranty"]
