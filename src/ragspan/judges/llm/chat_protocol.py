"""The chat protocol: what an endpoint takes, and what it answers.

Endpoints that call themselves compatible may lack schemas, JSON mode, several choices or temperatures (so do OpenAI's own
reasoning models). They answer 400 or 422 and name the parameter; the request is made again without it.

A choice that cannot hold a verdict (cut off, refused, filtered, empty, malformed) is kept with an empty text and the reason:
reading it finds no answer, and its cost is still counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.base import Completion
from ragspan.judges.llm.errors import words_of
from ragspan.judges.llm.replies import CUT_OFF, EMPTY, REFUSED
from ragspan.outcomes import Usage
from ragspan.provider_replies import facts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCapabilities:
    """The optional parameters that an endpoint takes."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    several_choices: bool = True
    temperature: bool = True

    def parameters(self, *, schema: Mapping[str, Any], n: int, temperature: float) -> dict[str, Any]:
        """Those parameters of a request that the endpoint takes."""
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

    def without(self, error: Exception) -> EndpointCapabilities | None:
        """The capabilities without what an error complains about; None if it does not, or if that cannot be left out."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status not in _COMPLAINTS:
            return None
        complaint, parameter = words_of(error), getattr(error, "param", None)
        cause = parameter if isinstance(parameter, str) and parameter else complaint
        if self.response_format != "none" and _ABOUT_FORMAT.search(cause):
            simpler: Literal["json_object", "none"] = "json_object" if self.response_format == "json_schema" else "none"
            return replace(self, response_format=simpler)
        if self.temperature and _ABOUT_TEMPERATURE.search(cause):
            return replace(self, temperature=False)
        if self.several_choices and (cause == "n" or (cause == complaint and _ABOUT_CHOICES.search(complaint))):
            return replace(self, several_choices=False)
        return None


_COMPLAINTS = {400, 404, 422}  # a proxy answers 404 when no model behind it takes the parameters
_ABOUT_FORMAT = re.compile(r"response_format|schema|json_object|generate JSON|grammar|\btool_choice\b|\btools?\b")
"""If an endpoint takes no schema, frameworks pass it as a tool. Local servers turn a schema into a grammar."""
_ABOUT_TEMPERATURE = re.compile(r"temperature")
_ABOUT_CHOICES = re.compile(
    r"""["'`]n["'`]|\bn (?:must|should|is|>|=)|\bparameter:? n\b|best_of|one completion choice"""
)


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    """Mistral's reasoning models answer in parts, of which those of the type `text` are the reply."""
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


def read_completions(reply: object) -> list[Completion]:
    """The choices of a chat completion; the first one has all of the usage.

    Raises:
        JudgeError: there is no choice at all.
    """
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices:
        message = (
            "the endpoint's answer is no chat completion, because it has no choices: check base_url, which has to be that of "
            "an OpenAI-compatible API and usually ends in /v1"
        )
        raise JudgeError("InvalidResponse", message, outage=True)  # such as a proxy's page
    usage = usage_of([reply])
    return [_completion(choice, Usage() if place else usage) for place, choice in enumerate(choices)]


def _completion(choice: object, usage: Usage) -> Completion:
    try:
        read = msgspec.convert(choice, _Choice)
    except msgspec.ValidationError:
        return Completion(text="", usage=usage)
    content = read.message.content
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return whole_completion(content or "", usage, "refusal" if read.message.refusal else read.finish_reason)


def whole_completion(text: str, usage: Usage, finish_reason: str | None) -> Completion:
    """A completion whose text is empty if it was cut off or refused, which its finish reason says."""
    problem = _PROBLEMS.get((finish_reason or "").lower()) or (None if text.strip() else EMPTY)
    return Completion(text="" if problem else text, usage=usage, problem=problem)


_PROBLEMS = {
    "length": CUT_OFF,
    "max_tokens": CUT_OFF,
    "content_filter": REFUSED,
    "safety": REFUSED,
    "refusal": REFUSED,
}
"""Of a reply that ended for this reason."""


def usage_of(told: Iterable[Any]) -> Usage:
    """The usage of one request, by what the provider reports; many compatible servers report no tokens."""
    facts = facts_of(told)
    return Usage(
        requests=1,
        input_tokens=max(0, facts.input_tokens or 0),
        cached_tokens=max(0, facts.cached_tokens or 0),
        output_tokens=max(0, facts.output_tokens or 0),
    )
