"""Programs, as logs, whose prompts hold a fact somewhere, and whether a judge of their record finds it."""

from __future__ import annotations

from collections.abc import Callable

from written_logs import PUMP, QUESTION, WrittenLog

from ragspan.matching import words_of
from ragspan.records import RagRecord
from ragspan.request.contents import Call, PayloadMessage

FACT = "The spare kit costs forty euros and is sold in Lyon."
RULES = "You are a friendly assistant of the pump works; answer in two short sentences, and be polite to everybody."
ASKED = PayloadMessage("human", QUESTION)

Program = Callable[[WrittenLog, str], object]
"""Writes the log of a request whose prompt holds a fact somewhere, and is given that fact."""


def supports(record: RagRecord, claim: str) -> bool:
    """Whether the words of a claim stand in a row in one of the texts that a judge of this record gets."""
    wanted = f" {' '.join(words_of(claim))} "
    texts = [*(each.text for each in record.contexts or ()), *(each.text for each in record.background)]
    return any(wanted in f" {' '.join(words_of(text))} " for text in texts)


def record_of(program: Program, claim: str) -> RagRecord:
    log = WrittenLog()
    program(log, claim)
    record = log.ends(claim)
    assert record is not None
    return record


def answers(log: WrittenLog, claim: str, *prompt: PayloadMessage) -> None:
    log.says(claim, list(prompt))


def by_hand(write: Callable[[str], str], role: str = "human") -> Program:
    """A function makes a message of its own from documents and something else."""

    def program(log: WrittenLog, fact: str) -> None:
        log.searches(PUMP)
        answers(log, fact, PayloadMessage(role, write(fact)), ASKED)

    return program


def tool(write: Callable[[str], str], given: object = None, *, beside_search: bool = True) -> Program:
    """A tool that is not a search returns a text."""

    def program(log: WrittenLog, fact: str) -> None:
        if beside_search:
            log.searches(PUMP)
        calls = PayloadMessage("ai", calls=[Call("look_up", "7", given or {"query": "spare kit"})])
        log.says(calls, [ASKED])
        log.uses(write(fact), given or {"query": "spare kit"}, "7")
        answers(
            log,
            fact,
            PayloadMessage("system", f"Use: {PUMP}"),
            ASKED,
            calls,
            PayloadMessage("tool", write(fact), call_id="7"),
        )

    return program
