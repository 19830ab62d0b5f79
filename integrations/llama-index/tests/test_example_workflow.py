"""The example's workflow, run in every way: only what the reranker left reaches the model."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from captures import Answered, until

EXAMPLE = Path(__file__).parents[3] / "examples" / "llama_index_workflow.py"
SETTLED = "Beta settles card payments after midnight."
REFUNDED = "Beta refunds a cancelled order within ten days."
INVOICES = "Gamma sends invoices by registered mail."
QUESTIONS = ["When are card payments settled?", "How soon is a cancelled order refunded?"]
ANSWERS = [
    Answered(QUESTIONS[0], [SETTLED, INVOICES], SETTLED),
    Answered(QUESTIONS[1], [REFUNDED, INVOICES], REFUNDED),
]


@pytest.fixture
def workflow(monkeypatch):
    spec = importlib.util.spec_from_file_location("llama_index_workflow", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where the types of a workflow's events are looked up
    spec.loader.exec_module(module)
    return module.answering()


async def test_answers_in_one_piece(workflow, captured):
    for question in QUESTIONS:
        await workflow.run(question=question)

    assert captured.answers() == ANSWERS


async def test_a_stream_whose_reader_leaves(workflow, captured):
    streamed = await workflow.run(question=QUESTIONS[0], is_streamed=True)
    reading = streamed.async_response_gen()
    first = await anext(reading)
    await reading.aclose()
    del streamed, reading
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTIONS[0], [SETTLED, INVOICES], "aborted")
    assert answer.response == first
