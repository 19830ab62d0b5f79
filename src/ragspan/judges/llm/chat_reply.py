"""Reads the answer of a chat endpoint, which need not be what the protocol says.

A choice that cannot hold a verdict (cut off, refused, filtered, empty, malformed) is kept with an empty text: it counts
as invalid where it is parsed, and what it cost is still accounted for.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.base import Completion
from ragspan.outcomes import Usage


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _TokenUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


def read_completions(reply: object) -> list[Completion]:
    """The choices of a chat completion, each with its share of the usage.

    Raises:
        JudgeError: there is no choice at all.
    """
    choices = _part(reply, "choices")
    if not isinstance(choices, list) or not choices:
        message = "the endpoint's answer is no chat completion: it has no choices"
        raise JudgeError("InvalidResponse", message, outage=True)  # a proxy's page, or an error sent as a success
    shares = split_usage(_read_usage(_part(reply, "usage")), len(choices))
    return [Completion(text=_read_text(choice), usage=share) for choice, share in zip(choices, shares, strict=True)]


def _part(reply: object, name: str) -> object:
    """What the reply has under a name, whether it is still plain JSON or an object of a client's."""
    return reply.get(name) if isinstance(reply, Mapping) else getattr(reply, name, None)


def split_usage(usage: Usage, parts: int) -> list[Usage]:
    """Equal shares of whole numbers that add up to the whole; the first ones take what is left over."""
    return [
        Usage(
            requests=_share(usage.requests, parts, part),
            input_tokens=_share(usage.input_tokens, parts, part),
            cached_tokens=_share(usage.cached_tokens, parts, part),
            output_tokens=_share(usage.output_tokens, parts, part),
        )
        for part in range(parts)
    ]


def _share(whole: int, parts: int, part: int) -> int:
    return whole // parts + (part < whole % parts)


def _read_text(choice: object) -> str:
    try:
        read = msgspec.convert(choice, _Choice, from_attributes=True)
    except msgspec.ValidationError:
        return ""
    if read.finish_reason in _NO_ANSWER or read.message.refusal:
        return ""
    return read.message.content or ""


def _read_usage(usage: object) -> Usage:
    try:
        read = msgspec.convert(usage, _TokenUsage, from_attributes=True)
    except msgspec.ValidationError:  # many compatible servers leave it out
        return Usage(requests=1)
    details = read.prompt_tokens_details
    return Usage(
        requests=1,
        input_tokens=max(0, read.prompt_tokens),
        cached_tokens=max(0, details.cached_tokens or 0) if details else 0,
        output_tokens=max(0, read.completion_tokens),
    )


_NO_ANSWER = {"length", "content_filter"}
