"""Programs as the public shows them, and by the rule what the record of each must hold. Each is called with a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from captures import Grounded
from rag_programs import ANSWER, QUESTION

PROGRAMS: dict[str, PublicProgram] = {}


@dataclass(frozen=True, kw_only=True)
class PublicProgram:
    """A program, and what of its record is told by the words of its prompts."""

    run: Callable[[dict[str, Any]], Any]
    answer: Grounded
    records: int


def program(
    contexts: Sequence[str] | None,
    *,
    background: Sequence[tuple[str, str]] = (),
    unknown: str | None = None,
    question: str | None = QUESTION,
    response: str = ANSWER,
    records: int = 1,
) -> Callable[[Callable[[dict[str, Any]], Any]], Callable[[dict[str, Any]], Any]]:
    """Puts a function into the table, under its name in words."""

    def put(run: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        PROGRAMS[run.__name__.replace("_", " ")] = PublicProgram(
            run=run,
            answer=Grounded(
                question=question, contexts=contexts, response=response, background=list(background), unknown=unknown
            ),
            records=records,
        )
        return run

    return put
