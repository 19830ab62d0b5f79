"""A judge that asks a language model, through any client of a chat endpoint; frameworks' models by `BlockingChatClient`."""

from __future__ import annotations

from ragspan.judges.llm.blocking import BlockingChatClient
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.chat_protocol import completion_of
from ragspan.judges.llm.llm_judge import LLMJudge

__all__ = ["BlockingChatClient", "EndpointCapabilities", "LLMJudge", "completion_of"]
