"""A judge that asks a language model, through any client of a chat endpoint; frameworks' models by `BlockingChatClient`."""

from ragspan.judges.llm.blocking import BlockingChatClient
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.llm_judge import LLMJudge
from ragspan.judges.llm.replies import completion_of

__all__ = ["BlockingChatClient", "EndpointCapabilities", "LLMJudge", "completion_of"]
