"""What requests cost by the token, and how much of it a provider's prompt cache could serve."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

LEAST_CACHED = 1024
"""Tokens: OpenAI's cache serves prompts of at least that many, ..."""
CACHED_STEP = 128
"""... and of these, prefixes in steps of this many."""

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokenizer:
    """Counts tokens."""

    name: str
    count: Callable[[str], int]


def tokenizer() -> Tokenizer:
    """That of OpenAI's models, if LlamaIndex is there, which brings its data; else a rule of thumb.

    Nothing is downloaded.
    """
    try:
        import tiktoken
        from llama_index.core.utils import get_tokenizer
    except ImportError:
        return Tokenizer(name="characters / 4", count=lambda text: -(-len(text) // _CHARACTERS_PER_TOKEN))
    os.environ.pop("TIKTOKEN_CACHE_DIR", None)  # with another place than LlamaIndex's own, tiktoken would download
    model = "gpt-4o-mini"
    encode = get_tokenizer(model)
    return Tokenizer(name=f"tiktoken, {tiktoken.encoding_name_for_model(model)}", count=lambda text: len(encode(text)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Of judging one answer."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    common_tokens: int
    """In the prefix that all requests share, counted in each request; those of the only request are none."""
    cacheable_tokens: int
    """In the longest prefix that a request shares with an earlier one, of whatever length."""
    cached_tokens: int
    """The same as OpenAI's cache counts it: from 1,024 tokens on, in steps of 128."""


def cost_of(exchanges: Sequence[Mapping[str, Any]], tokens: Tokenizer) -> Cost:
    """What the exchanges about one answer cost, in the order in which they came."""
    prompts = [prompt_of(exchange["request"]) for exchange in exchanges]
    shared = [_longest_shared(prompt, prompts[:place]) for place, prompt in enumerate(prompts)]
    cacheable = [tokens.count(prefix) for prefix in shared]
    common = tokens.count(reduce(_shared, prompts)) if len(prompts) > 1 else 0
    return Cost(
        requests=len(prompts),
        prompt_tokens=sum(map(tokens.count, prompts)),
        completion_tokens=sum(
            tokens.count(exchange["reply"]) * (exchange["request"].get("n") or 1) for exchange in exchanges
        ),
        common_tokens=common * len(prompts),
        cacheable_tokens=sum(cacheable),
        cached_tokens=sum(count // CACHED_STEP * CACHED_STEP for count in cacheable if count >= LEAST_CACHED),
    )


def prompt_of(request: Mapping[str, Any]) -> str:
    """A request as its model reads it: tools and schema first, which OpenAI puts before the system message, then messages.

    The few tokens that providers put around each message are left out.
    """
    forms = [json.dumps(request[key]) for key in ("tools", "response_format") if request.get(key)]
    messages = [f"{message['role']}\n{message['content']}" for message in request["messages"]]
    return "\n".join([*forms, *messages])


def _longest_shared(prompt: str, earlier: Sequence[str]) -> str:
    return max((_shared(prompt, other) for other in earlier), key=len, default="")


def _shared(one: str, other: str) -> str:
    """What both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return one[: next((place for place, (here, there) in pairs if here != there), min(len(one), len(other)))]
