"""A judge that asks a language model, through any client of a chat endpoint."""

from __future__ import annotations

from ragspan.judges.llm.llm_judge import LLMJudge
from ragspan.judges.llm.prompts import PROMPT_VERSION

__all__ = ["PROMPT_VERSION", "LLMJudge"]
