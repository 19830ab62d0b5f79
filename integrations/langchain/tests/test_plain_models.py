"""A plain language model that is called asynchronously: LangChain tells its start to the inline handlers or to the others."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from rag_programs import ANSWER, FOUND, PROMPT, QUESTION, join_texts, retriever

from ragspan_langchain import RagspanCallbackHandler


class Hearing(BaseCallbackHandler):
    """Notes the events of models, and of which run they are."""

    def __init__(self, *, inline=False):
        self.run_inline = inline
        self.heard = []

    def on_llm_start(self, serialized, prompts, *, run_id, parent_run_id=None, tags=None, metadata=None, **_):
        self.heard.append(("start", prompts, tags, metadata, run_id, parent_run_id))

    def on_llm_end(self, response, *, run_id, parent_run_id=None, **_):
        self.heard.append(("end", response.generations[0][0].text, run_id, parent_run_id))


class HearingAsynchronously(AsyncCallbackHandler):
    def __init__(self):
        self.heard = []

    async def on_llm_start(self, serialized, prompts, *, run_id, **_):
        self.heard.append("start")

    async def on_llm_end(self, response, *, run_id, **_):
        self.heard.append("end")


def rag_chain():
    return (
        {"context": retriever() | join_texts, "question": lambda question: question}
        | PROMPT
        | FakeListLLM(responses=[ANSWER])
        | StrOutputParser()
    )


def kinds(handler):
    return [event if isinstance(event, str) else event[0] for event in handler.heard]


def ask(*handlers):
    return asyncio.run(FakeListLLM(responses=[ANSWER]).ainvoke(QUESTION, config={"callbacks": list(handlers)}))


@pytest.mark.parametrize("first", [True, False], ids=["beside ours, before it", "beside ours, after it"])
@pytest.mark.parametrize(
    "others",
    [[Hearing], [HearingAsynchronously], [Hearing, HearingAsynchronously], [lambda: Hearing(inline=True)]],
    ids=["sync", "async", "both", "inline"],
)
def test_other_handlers_hear_the_start_as_without_us(captured, others, first):
    made = [make() for make in others]
    ask(*made, captured.handler) if first else ask(captured.handler, *made)

    assert [kinds(handler) for handler in made] == [["start", "end"]] * len(made)


def test_a_handler_beside_an_inline_one_hears_as_little_as_langchain_tells_it(captured):
    beside_us, alone = Hearing(), Hearing()
    ask(beside_us, Hearing(inline=True), captured.handler)
    ask(alone, Hearing(inline=True))

    assert kinds(beside_us) == kinds(alone)


def test_a_handler_of_ours_that_is_switched_off_silences_nobody(captured):
    captured.handler.enable(enabled=False)
    other = Hearing()
    asyncio.run(rag_chain().ainvoke(QUESTION, config={"callbacks": [other, captured.handler]}))

    assert kinds(other) == ["start", "end"]
    assert captured.records() == []


def test_every_prompt_of_a_batch_is_a_run_that_all_hear_of(captured):
    other = Hearing()
    config = {"callbacks": [other, captured.handler], "tags": ["night"], "metadata": {"tenant": "lyon"}}
    asyncio.run(rag_chain().abatch(["first", "second"], config))

    starts, ends = ([event for event in other.heard if event[0] == kind] for kind in ("start", "end"))
    assert [len(start[1]) for start in starts] == [1, 1]
    assert all("night" in start[2] and start[3].items() >= {"tenant": "lyon"}.items() for start in starts)
    assert {start[4] for start in starts} == {end[2] for end in ends}
    assert len({start[4] for start in starts}) == 2
    assert sorted(record.question for record in captured.records()) == ["first", "second"]


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "not inline"])
def test_our_record_is_right_beside_a_handler_that_is(captured, inline):
    asyncio.run(rag_chain().ainvoke(QUESTION, config={"callbacks": [Hearing(inline=inline), captured.handler]}))

    (record,) = captured.records()
    assert record.response == ANSWER
    assert [context.text for context in record.contexts] == FOUND


def test_an_error_that_another_handler_raises_is_raised_as_without_us(captured):
    class Refusing(BaseCallbackHandler):
        raise_error = True

        def on_llm_start(self, *_, **__):
            raise PermissionError("not this prompt")

    with pytest.raises(PermissionError):
        ask(Refusing(), captured.handler)
    assert captured.handler.open_runs == 0


def test_an_error_in_a_handler_made_of_ours_reaches_nobody(captured, caplog):
    class Broken(RagspanCallbackHandler):
        def on_llm_start(self, *_, **__):
            raise ZeroDivisionError

    other = Hearing()
    assert ask(other, Broken(sink=captured.sink)) == ANSWER
    assert kinds(other) == ["start", "end"]
    assert "Error in Broken.on_llm_start callback" in caplog.text
    caplog.clear()
