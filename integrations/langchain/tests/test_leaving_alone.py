"""What the handler must leave alone and let go of; the hazards of the conformance suite show most of it."""

from __future__ import annotations

import gc
import logging
import types
import weakref
from typing import Any

from captures import Answered
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from rag_programs import (
    FOUND,
    PUMP,
    QUESTION,
    FixedRetriever,
    answer_chain,
    documents,
    join_texts,
    rag_chain,
    retriever,
    texts_of,
)

_OBJECTS_PER_REQUEST = 8
"""What may stay of a finished request: room for a bounded memory of ids, not for runs."""


class TracedRetriever(BaseRetriever):
    """Returns documents that nobody else holds, and remembers them weakly."""

    made: list[Any]

    def _get_relevant_documents(self, query, *, run_manager):
        found = [Document(page_content=text) for text in FOUND]
        self.made.extend(weakref.ref(document) for document in found)
        return found

    def alive(self):
        gc.collect()
        return sum(reference() is not None for reference in self.made)


def reachable_objects(handler):
    """How many objects the handler keeps alive, not counting code, classes and modules."""
    skipped = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, logging.Logger)
    seen = {id(handler)}
    queue = [handler]
    while queue:
        for item in gc.get_referents(queue.pop()):
            if id(item) not in seen and not isinstance(item, skipped):
                seen.add(id(item))
                queue.append(item)
    return len(seen)


def test_a_generator_in_the_input_is_not_read(captured):
    rows = iter(["one", "two"])
    program = RunnableLambda(lambda fields: ", ".join(fields["rows"]))

    assert program.invoke({"question": QUESTION, "rows": rows}, captured.config) == "one, two"
    assert captured.answers() == [Answered(QUESTION, [], "one, two")]


def test_the_same_document_object_in_every_answer(captured):
    """Some retrievers return the very documents that they keep; one request's changes are that request's."""
    kept = documents(PUMP)

    def shout(found):
        found[0].page_content = found[0].page_content.upper()
        return join_texts(found)

    rag_chain(FixedRetriever(result=kept)).invoke(QUESTION, captured.config)
    rag_chain(FixedRetriever(result=kept), formatter=shout).invoke(QUESTION, captured.config)

    assert [answer.contexts for answer in captured.answers()] == [[PUMP], [PUMP.upper()]]


def test_a_retriever_that_is_called_without_a_chain_gets_its_documents(captured):
    class OwnRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return documents(*FOUND)

    assert texts_of(OwnRetriever().invoke(QUESTION, captured.config)) == FOUND
    assert texts_of(retriever().invoke(QUESTION, captured.config)) == FOUND


def test_a_capture_that_waits_to_be_scored_holds_texts_and_no_documents(captured):
    source = TracedRetriever(made=[])
    rag_chain(source).invoke(QUESTION, captured.config)

    assert source.alive() == 0
    assert captured.answer().contexts == FOUND


def test_many_requests_keep_no_more_than_few(captured):
    program = rag_chain(FixedRetriever(result=lambda: [Document(page_content=PUMP)]))
    for _ in range(20):
        program.invoke(QUESTION, captured.config)
    captured.records()
    before = reachable_objects(captured.handler)
    for _ in range(200):
        program.invoke(QUESTION, captured.config)
    captured.records()

    assert reachable_objects(captured.handler) - before <= 200 * _OBJECTS_PER_REQUEST


def test_batches_and_failed_requests_keep_nothing_open(captured):
    def fail_for_two(fields):
        if "2" in fields["question"]:
            raise ValueError
        return fields

    program = (
        {"question": lambda text: text, "context": retriever() | join_texts}
        | RunnableLambda(fail_for_two)
        | answer_chain()
    )
    program.batch([str(number) for number in range(10)], captured.config, return_exceptions=True)

    assert captured.handler.open_runs == 0
    assert sorted(answer.status for answer in captured.answers()) == ["complete"] * 9 + ["error"]
