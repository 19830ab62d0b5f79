"""What the demo asks, in which way, and how the model is to answer."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragspan.demo.corpus import Passage


class Way(enum.Enum):
    """How the application calls its chain."""

    INVOKE = "invoke"
    STREAM = "stream"
    ASTREAM = "astream"
    BATCH = "batch"
    AGENT = "agent"
    CLOSED_EARLY = "stream, closed early"


class Manner(enum.Enum):
    """How the embedded model answers; a real model answers as it likes."""

    GOOD = "good"
    INCOMPLETE = "incomplete"
    UNGROUNDED = "ungrounded"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Questions that the application asks in one call: several in a batch, else one."""

    questions: tuple[str, ...]
    way: Way = Way.INVOKE
    manner: Manner = Manner.GOOD


class AnsweringFramework(Protocol):
    """A framework's chain, with ragspan's handler attached as a user would."""

    def __init__(self, *, passages: Sequence[Passage], model: str | None) -> None:
        """`model` names a real one, `openai:<name>`; None means the embedded one."""
        ...

    def answer(self, asked: Asked) -> list[str]:
        """Answer these questions in this way; returns what the caller got."""
        ...


SCRIPT: tuple[Asked, ...] = (
    Asked(questions=("What does context adherence tell?",)),
    Asked(questions=("What does the faithfulness score count?",), way=Way.STREAM),
    Asked(questions=("What happens at the end of the process?",), manner=Manner.INCOMPLETE),
    Asked(questions=("How is context utilization computed?",), way=Way.ASTREAM),
    Asked(
        questions=(
            "What happens when the queue is full?",
            "What does score_wait do?",
            "Which answers are not judged when sampling?",
        ),
        way=Way.BATCH,
    ),
    Asked(questions=("How many reviewers check each score?",), manner=Manner.UNGROUNDED),
    Asked(questions=("What does a ragspan licence cost per seat?",), manner=Manner.REFUSED),
    Asked(questions=("Which judges come with ragspan?",), way=Way.AGENT),
    Asked(questions=("What does a fork do to the engine?",), way=Way.CLOSED_EARLY),
    Asked(questions=("Which metrics can fail, and when?",), way=Way.STREAM, manner=Manner.UNGROUNDED),
)
