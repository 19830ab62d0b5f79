"""Programs of LlamaIndex as the public shows them, and by the rule what the record of each must hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from captures import Grounded
from li_programs import ANSWER, QUESTION

PROGRAMS: dict[str, PublicProgram] = {}


@dataclass(frozen=True, kw_only=True)
class PublicProgram:
    """A program, what its model says, and what of its record is told by the words of its prompts."""

    run: Callable[[], Any]
    said: Sequence[Any]
    answer: Grounded
    marks: Sequence[pytest.MarkDecorator]


def program(
    contexts: Sequence[str] | None,
    *said: Any,
    background: Sequence[tuple[str, str]] = (),
    unknown: str | None = None,
    question: str = QUESTION,
    response: str = ANSWER,
    marks: Sequence[pytest.MarkDecorator] = (),
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Puts a function into the table, under its name in words; `said` are the model's lines."""

    def put(run: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[run.__name__.replace("_", " ")] = PublicProgram(
            run=run,
            said=said or (ANSWER,),
            answer=Grounded(
                question=question, contexts=contexts, response=response, background=list(background), unknown=unknown
            ),
            marks=marks,
        )
        return run

    return put
