"""The chat protocol: what an endpoint answers.

A choice that cannot hold a verdict (cut off, refused, filtered, empty, malformed) is kept with an empty text and the reason:
reading it finds no answer, and its cost is still counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.replies import BROKEN_OFF, CUT_OFF, EMPTY, REFUSED, THOUGHTS_ONLY, TOOL_CALL
from ragspan.provider_replies import cost_of, facts_of, total_tokens_of
from ragspan.usage import Usage

_NO_COMPLETION = (
    "the endpoint's answer is not a chat completion, because it has no choices: check base_url, which has to be that of "
    "an OpenAI-compatible API and usually ends in /v1"
)
_STREAMED = (
    "the endpoint streams its answer (lines that begin with data:), although no stream was asked for: take a model or a "
    'gateway that answers without a stream, or give extra_body={"stream": False}'
)
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
_PROBLEMS: Final = {
    r"^(?:length|max_?tokens|max_output_tokens|model_length|max_length|model_context_window_exceeded)$": CUT_OFF,
    r"filter|safety|refusal|guardrail|recitation|blocklist|prohibited|spii|sensitive|blocked": REFUSED,
    r"^(?:error|network_error|insufficient_system_resource|abort)$": BROKEN_OFF,
}
"""Of a reply that ended for this reason, by a pattern for the reasons of all providers."""


def read_completions(reply: object) -> list[Completion]:
    """The choices of a chat completion; the first one has all of the usage.

    Raises:
        JudgeError: there is no choice at all.
    """
    fields = reply if isinstance(reply, Mapping) else {}
    choices, usage = fields.get("choices"), _usage_of([reply])
    if not isinstance(choices, list) or not choices:
        words = _NO_COMPLETION
        if isinstance(reply, str) and reply.lstrip().startswith(("data:", "event:", ": ", "id:")):
            words = _STREAMED
        elif "promptFeedback" in fields or "prompt_feedback" in fields:
            words = REFUSED  # Google leaves the choices out where its filter takes the prompt
        used = usage if fields.get("usage") else None
        raise JudgeError("InvalidResponse", words, outage=words == _NO_COMPLETION, usage=used)
    completions = []
    for place, choice in enumerate(choices):
        own: Mapping[str, Any] = choice if isinstance(choice, Mapping) else {}
        message = own.get("message")
        share = Usage() if place else usage
        if not isinstance(message, Mapping):
            completions.append(Completion(text="", usage=share))
            continue
        text = _text_in(message.get("content"))
        ends = (
            "refusal" if message.get("refusal") else own.get("finish_reason") or ("error" if own.get("error") else "")
        )
        if message.get("tool_calls") and not text.strip():
            completions.append(Completion(text="", usage=share, problem=TOOL_CALL))
        else:
            completions.append(_whole(text, share, str(ends), has_thoughts=any(map(message.get, _THOUGHTS))))
    return completions


def _text_in(content: object) -> str:
    """The reply in a message's content: a text, or parts in a list (Mistral's reasoning models)."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        is_text = isinstance(part, Mapping) and part.get("type", "text") in {"text", "output_text"}
        texts.append(part if isinstance(part, str) else _text_in(part.get("text")) if is_text else "")
    return "".join(texts)


def completion_of(metadata: Iterable[Any], text: str) -> Completion:
    """A completion of what a framework keeps of a reply: its text, which is left out if it was cut off or refused, and its metadata."""
    parts = [part for part in metadata if part is not None]
    kept = [part for part in parts if isinstance(part, Mapping)]
    has_thoughts = any(part.get(name) for part in kept for name in _THOUGHTS)
    ends = "refusal" if any(part.get("refusal") for part in kept) else facts_of(parts).finish_reason or ""
    return _whole(text, _usage_of(parts), ends, has_thoughts=has_thoughts)


def _whole(text: str, usage: Usage, finish_reason: str, *, has_thoughts: bool) -> Completion:
    ended = (words for pattern, words in _PROBLEMS.items() if re.search(pattern, finish_reason, re.IGNORECASE))
    problem = next(ended, None)
    if problem is None and not text.strip():
        problem = THOUGHTS_ONLY if has_thoughts else EMPTY
    return Completion(text="" if problem else text, usage=usage, problem=problem)


def _usage_of(metadata: Sequence[Any]) -> Usage:
    """The usage of one request, by what the provider reports; many compatible servers report no tokens, few the cost."""
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
