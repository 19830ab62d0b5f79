"""The chat protocol: what an endpoint answers.

A choice that cannot hold a verdict (cut off, refused, filtered, empty, malformed) is kept with an empty text and the reason:
reading it finds no answer, and its cost is still counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.replies import BROKEN_OFF, CUT_OFF, EMPTY, REFUSED, THOUGHTS_ONLY, TOOL_CALL
from ragspan.provider_replies import cost_of, facts_of, total_tokens_of
from ragspan.usage import Usage


class _ReplyMessage(msgspec.Struct):
    content: Any = None
    """A text. Mistral's reasoning models answer in parts, of which those of the type `text` are the reply."""
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    tool_calls: Any = None

    @property
    def has_thoughts(self) -> bool:
        return bool(self.reasoning_content or self.reasoning or self.thinking)


class _Choice(msgspec.Struct):
    message: _ReplyMessage
    finish_reason: Any = None
    error: Any = None
    """Gateways have one for each choice."""


def read_completions(reply: object) -> list[Completion]:
    """The choices of a chat completion; the first one has all of the usage.

    Raises:
        JudgeError: there is no choice at all.
    """
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices:
        message = STREAMED if _is_stream(reply) else _blocked(reply) or NO_COMPLETION
        usage = usage_of([reply]) if isinstance(reply, Mapping) and reply.get("usage") else None
        raise JudgeError("InvalidResponse", message, outage=message == NO_COMPLETION, usage=usage)
    usage = usage_of([reply])
    return [_completion(choice, Usage() if place else usage) for place, choice in enumerate(choices)]


NO_COMPLETION = (
    "the endpoint's answer is not a chat completion, because it has no choices: check base_url, which has to be that of "
    "an OpenAI-compatible API and usually ends in /v1"
)
STREAMED = (
    "the endpoint streams its answer (lines that begin with data:), although no stream was asked for: take a model or a "
    'gateway that answers without a stream, or give extra_body={"stream": False}'
)


def _is_stream(reply: object) -> bool:
    return isinstance(reply, str) and reply.lstrip().startswith(("data:", "event:", ": ", "id:"))


def _blocked(reply: object) -> str | None:
    """Google leaves the choices out where its filter takes the prompt."""
    is_blocked = isinstance(reply, Mapping) and any(key in reply for key in ("promptFeedback", "prompt_feedback"))
    return REFUSED if is_blocked else None


def _completion(choice: object, usage: Usage) -> Completion:
    try:
        read = msgspec.convert(choice, _Choice)
    except msgspec.ValidationError:
        return Completion(text="", usage=usage)
    message = read.message
    reason = "refusal" if message.refusal else read.finish_reason or ("error" if read.error else None)
    text = _text_in(message.content)
    if message.tool_calls and not text.strip():
        return Completion(text="", usage=usage, problem=TOOL_CALL)
    return whole_completion(text, usage, str(reason) if reason else None, has_thoughts=message.has_thoughts)


def _text_in(content: object) -> str:
    """The reply in a message's content: a text, or parts in a list."""
    if isinstance(content, list):
        return "".join(
            part
            if isinstance(part, str)
            else _text_in(part.get("text"))
            if isinstance(part, Mapping) and part.get("type", "text") in {"text", "output_text"}
            else ""
            for part in content
        )
    return content if isinstance(content, str) else ""


def whole_completion(text: str, usage: Usage, finish_reason: str | None, *, has_thoughts: bool = False) -> Completion:
    """A completion whose text is empty if it was cut off or refused, which its finish reason says."""
    problem = _problem_of(finish_reason or "")
    if problem is None and not text.strip():
        problem = THOUGHTS_ONLY if has_thoughts else EMPTY
    return Completion(text="" if problem else text, usage=usage, problem=problem)


def _problem_of(finish_reason: str) -> str | None:
    return next(
        (problem for pattern, problem in _PROBLEMS.items() if re.search(pattern, finish_reason, re.IGNORECASE)), None
    )


_PROBLEMS = {
    r"^(?:length|max_?tokens|max_output_tokens|model_length|max_length|model_context_window_exceeded)$": CUT_OFF,
    r"filter|safety|refusal|guardrail|recitation|blocklist|prohibited|spii|sensitive|blocked": REFUSED,
    r"^(?:error|network_error|insufficient_system_resource|abort)$": BROKEN_OFF,
}
"""Of a reply that ended for this reason, by a pattern for the reasons of all providers."""


def refused_or_thoughts(metadata: Iterable[Any]) -> tuple[bool, bool]:
    """Whether what frameworks keep of a message has a refusal, and whether it has thoughts."""
    kept = [part for part in metadata if isinstance(part, Mapping)]
    has_thoughts = any(part.get(name) for part in kept for name in ("reasoning_content", "reasoning", "thinking"))
    return any(part.get("refusal") for part in kept), has_thoughts


def usage_of(metadata: Iterable[Any]) -> Usage:
    """The usage of one request, by what the provider reports; many compatible servers report no tokens, few the cost."""
    metadata = list(metadata)
    facts = facts_of(metadata)
    input_tokens, output_tokens = facts.input_tokens or 0, facts.output_tokens or 0
    return Usage(
        requests=1,
        input_tokens=input_tokens,
        cached_tokens=facts.cached_tokens or 0,
        # Google and xAI leave the thoughts, which are paid as well, out of the output.
        output_tokens=max(output_tokens, (total_tokens_of(metadata) or 0) - input_tokens) if output_tokens else 0,
        usd=cost_of(metadata),
    )
