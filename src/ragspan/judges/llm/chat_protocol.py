"""The protocol of chat endpoints: what an endpoint takes, and what it answers.

Endpoints that call themselves compatible lack one thing or another: schemas or JSON mode, several choices, temperatures
(OpenAI's own reasoning models). They answer 400 or 422 and name the parameter, and the request is made again without it.

A choice that cannot hold a verdict (cut off, refused, filtered, empty, malformed) is kept with an empty text: it counts
as invalid where it is parsed, and what it cost is still counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.base import Completion
from ragspan.outcomes import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCapabilities:
    """The optional parameters that an endpoint takes."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    several_choices: bool = True
    temperature: bool = True

    def parameters(self, *, schema: Mapping[str, Any], n: int, temperature: float) -> dict[str, Any]:
        """The parameters of a request, as far as the endpoint takes them."""
        parameters: dict[str, Any] = {}
        if self.response_format == "json_schema":
            json_schema = {"name": "answer", "strict": True, "schema": schema}
            parameters["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        elif self.response_format == "json_object":
            parameters["response_format"] = {"type": "json_object"}
        if self.several_choices and n > 1:
            parameters["n"] = n
        if self.temperature:
            parameters["temperature"] = temperature
        return parameters

    def without(self, complaint: str, parameter: str | None) -> EndpointCapabilities | None:
        """The capabilities of an endpoint that complains; None if it is about nothing that can be left out.

        Args:
            complaint: the error's message.
            parameter: what the error names as its cause, if anything.
        """
        cause = parameter or complaint
        if self.response_format != "none" and _ABOUT_FORMAT.search(cause):
            simpler: Literal["json_object", "none"] = "json_object" if self.response_format == "json_schema" else "none"
            return replace(self, response_format=simpler)
        if self.temperature and _ABOUT_TEMPERATURE.search(cause):
            return replace(self, temperature=False)
        if self.several_choices and (parameter == "n" or (parameter is None and _ABOUT_CHOICES.search(complaint))):
            return replace(self, several_choices=False)
        return None


_ABOUT_FORMAT = re.compile(r"response_format|schema|json_object|\btool_choice\b|\btools?\b")
"""Frameworks hand a schema over as a tool where an endpoint knows no other way."""
_ABOUT_TEMPERATURE = re.compile(r"temperature")
_ABOUT_CHOICES = re.compile(r"""["'`]n["'`]|\bn (?:must|should|is|>|=)|\bparameter:? n\b|best_of""")


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
