"""What a log of a request amounts to; the framework takes no part in it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from ragspan.capturing.log import EventKind, RequestLog
from ragspan.messages import note_error
from ragspan_llama_index.classes import ClassFacts
from ragspan_llama_index.fold import record_of

PROMPT = "Context: The cello has four strings. Question: How many strings?"


def facts(name, *bases):
    return ClassFacts(name, "app", frozenset(bases), "Rerank" in name, {}, 0)


def node(identity, text, score=1.0):
    return (identity, score, f"n{identity}", text, {}, None)


@pytest.fixture
def log():
    """A request that asked an engine, which has searched."""
    log = RequestLog()
    log.root = "query"
    log.note(EventKind.START, "query", "", {"asked": (("", "How many strings?"),)}, ("call", facts("Engine")))
    log.note(EventKind.START, "search", "query", {"asked": (("", "strings"),)}, ("search", facts("Retriever")))
    log.note(
        EventKind.END,
        "search",
        None,
        {"found": [node(1, "The cello has four strings."), node(2, "The harp has 47.", 0.5)]},
    )
    return log


def ended(log, answer="Four."):
    log.note(EventKind.END, "query", None, {"answer": answer})
    log.end()
    return record_of(log)


def test_the_texts_that_a_synthesizer_wrote_are_the_contexts(log):
    log.note(
        EventKind.START,
        "synthesis",
        "query",
        {"given": [node(1, "The cello has four strings.")]},
        ("synthesis", facts("Refine")),
    )
    log.note(EventKind.TEXTS, "synthesis", None, {"texts": ["page: 3 The cello has four strings."]})
    log.note(EventKind.TEXTS, "synthesis", None, {"texts": ["all of it packed into one"]})
    log.note(EventKind.END, "synthesis", None, {"answer": "Four.", "result": 7})

    record = ended(log)
    assert (record.question, record.response, record.status) == ("How many strings?", "Four.", "complete")
    assert [(one.id, one.text, one.rank) for one in record.contexts] == [
        ("n1", "page: 3 The cello has four strings.", 0)
    ]
    assert [one.query for one in record.retrievals] == ["strings"]


def test_what_stands_in_the_prompt_of_a_model_is_the_contexts(log):
    log.note(EventKind.START, "model", "query", {"prompt": ((None, (PROMPT,), (), None),)}, ("model", facts("Model")))
    log.note(EventKind.END, "model", None, {"answer": "Four."})

    record = ended(log)
    assert [one.id for one in record.contexts] == ["n1"]
    assert [one.prompt[0].text for one in record.generations] == [PROMPT]


def test_a_reranker_tells_what_is_left_of_a_search(log):
    given = [node(1, "The cello has four strings."), node(2, "The harp has 47.")]
    log.note(
        EventKind.START, "rerank", "query", {"given": given, "query": "strings"}, ("postprocessing", facts("LLMRerank"))
    )
    log.note(EventKind.END, "rerank", None, {"found": [node(2, "The harp has 47.", 9.0)]})
    log.note(EventKind.NODES, "", None, {2: ("The harp has 47 strings.", None)})

    record = ended(log)
    (reranking,) = record.rerankings
    assert (len(reranking.given), [one.score for one in reranking.contexts]) == (2, [9.0])


def test_an_error_of_the_root_is_that_of_the_request(log):
    for span in ("search", "query"):
        noted = note_error(ConnectionError("no database"))
        log.note(EventKind.ERROR, span, None, {"error": "ConnectionError", "noted": noted}, False)
    log.end()

    record = record_of(log)
    assert (record.status, record.error_type, record.response) == ("error", "ConnectionError", None)


def test_a_request_that_was_given_up_is_aborted(log):
    log.abandoned = True
    log.end()

    assert record_of(log).status == "aborted"


def test_a_log_is_folded_alike_every_time(log):
    first = ended(log)

    assert replace(record_of(log), record_id=first.record_id) == first


def test_folding_imports_nothing_of_the_framework():
    program = (
        "import sys, ragspan_llama_index.fold; print([name for name in sys.modules if name.startswith('llama_index')])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)

    assert shown.stdout.strip() == "[]"
