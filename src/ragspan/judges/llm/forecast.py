"""What a request will take, before it is sent: an estimate that learns from what earlier ones took."""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.judges.base import ChatMessage
from ragspan.outcomes import Usage

_CHARACTERS_PER_TOKEN = 4.0
"""Of English text, by the tokenizers in use; other scripts have fewer, which the forecast learns."""
_TOKENS_PER_REPLY = 250.0
"""Some sentences of reasoning and a verdict."""
_WEIGHT = 0.2
"""Of the newest observation: the mean of about the last ten."""


class Forecast:
    """Expects what the requests of a judge take.

    It learns the length of replies to each kind of question, the characters that make a token, and whether the client
    sends a request for each choice. Any number of threads may use it: an observation that is lost to a race costs nothing.
    """

    def __init__(self) -> None:
        self._characters_per_token = _CHARACTERS_PER_TOKEN
        self._tokens_per_reply: dict[str, float] = {}
        self._choices_are_requests = False

    def expect(self, messages: Sequence[ChatMessage], *, question: str, choices: int) -> Usage:
        """What a request for so many choices will take; tokens are rounded up."""
        requests = choices if self._choices_are_requests else 1
        prompt = _characters(messages) / self._characters_per_token
        reply = self._tokens_per_reply.get(question, _TOKENS_PER_REPLY)
        return Usage(requests=requests, input_tokens=int(requests * prompt) + 1, output_tokens=int(choices * reply) + 1)

    def learn(self, messages: Sequence[ChatMessage], used: Usage, *, question: str, choices: int) -> None:
        """Take what a request took into account; `choices` is how many replies came."""
        if choices > 1:
            self._choices_are_requests = used.requests > 1
        if used.input_tokens > 0:
            per_token = max(1, used.requests) * _characters(messages) / used.input_tokens
            self._characters_per_token = _moved(self._characters_per_token, per_token)
        if used.output_tokens > 0 and choices > 0:
            known = self._tokens_per_reply.get(question, _TOKENS_PER_REPLY)
            self._tokens_per_reply[question] = _moved(known, used.output_tokens / choices)


def _moved(mean: float, observation: float) -> float:
    return mean + _WEIGHT * (observation - mean)


def _characters(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message["content"]) for message in messages)
