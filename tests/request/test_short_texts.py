"""One word, or a few: documents that are no longer, and drafts of a single word."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from written_logs import PUMP, QUESTION, WrittenLog

from ragspan.request.contents import PayloadMessage

ANSWER = "It lasts three years, as the manual says."
ASKED = PayloadMessage("human", QUESTION)


def found_in(log: WrittenLog, *prompt: PayloadMessage) -> Sequence[str] | None:
    log.says(ANSWER, list(prompt))
    return log.answers(ANSWER).contexts


# Short documents


@pytest.mark.parametrize(
    "write",
    [
        "\n".join,
        ", ".join,
        json.dumps,
        lambda texts: "\n".join(f"[{at}] {one}" for at, one in enumerate(texts)),
    ],
    ids=["lines", "a list", "JSON", "numbered"],
)
@pytest.mark.parametrize("by_template", [True, False])
def test_short_documents_that_stand_by_themselves(write, by_template):
    log = WrittenLog()
    log.searches("Turin", "Graz")
    prompt: tuple[PayloadMessage, ...] = (
        PayloadMessage("system", f"Name the right place.\n\n{write(['Turin', 'Graz'])}"),
        ASKED,
    )
    if by_template:
        prompt = log.fills({"context": write(["Turin", "Graz"]), "question": QUESTION}, *prompt)

    assert found_in(log, *prompt) == ["Turin", "Graz"]


@pytest.mark.parametrize(
    "instructions",
    ["Answer from the context only.", "Context:", "Use the context, and only the context, for your answer."],
)
@pytest.mark.parametrize("by_template", [True, False])
def test_short_documents_that_were_dropped_and_whose_words_the_instructions_have(instructions, by_template):
    log = WrittenLog()
    log.searches("Context", PUMP, "only", "the context")
    prompt: tuple[PayloadMessage, ...] = (PayloadMessage("system", f"{instructions}\n\n{PUMP}"), ASKED)
    if by_template:
        prompt = log.fills({"context": PUMP, "question": QUESTION}, *prompt)

    assert found_in(log, *prompt) == [PUMP]
