"""Judges: what metrics ask. Each is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import (
    AnswerRelevanceJudge,
    ChatClient,
    ChatMessage,
    ClaimVerdict,
    Completion,
    ContextRating,
    ContextRelevanceJudge,
    ItemJudge,
    ItemQuestion,
    ItemVerdict,
    Judge,
    Rating,
    UtilizationJudge,
    Verifier,
    Vote,
)
from ragspan.judges.session import Price

if TYPE_CHECKING:
    from ragspan.judges.detector import Detector
    from ragspan.judges.judge_catalogue import named_judge
    from ragspan.judges.jury import Jury
    from ragspan.judges.llm import LLMJudge
    from ragspan.judges.openai import OpenAIJudge
    from ragspan.judges.screen import OverlapJudge
    from ragspan.judges.small_judges import SmallJudge

__all__ = [
    "AnswerRelevanceJudge",
    "ChatClient",
    "ChatMessage",
    "ClaimVerdict",
    "Completion",
    "ContextRating",
    "ContextRelevanceJudge",
    "Detector",
    "ItemJudge",
    "ItemQuestion",
    "ItemVerdict",
    "Judge",
    "JudgeError",
    "Jury",
    "LLMJudge",
    "OpenAIJudge",
    "OverlapJudge",
    "Price",
    "Rating",
    "SmallJudge",
    "UtilizationJudge",
    "Verifier",
    "Vote",
    "named_judge",
]

_LOADED_AT_FIRST_USE = {
    "Detector": "detector",
    "Jury": "jury",
    "LLMJudge": "llm",
    "OpenAIJudge": "openai",
    "OverlapJudge": "screen",
    "SmallJudge": "small_judges",
    "named_judge": "judge_catalogue",
}


def __getattr__(name: str) -> object:
    if name not in _LOADED_AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LOADED_AT_FIRST_USE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
