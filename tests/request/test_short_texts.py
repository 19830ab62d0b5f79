"""One word, or a few: documents that are no longer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from written_logs import QUESTION, WrittenLog

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
