"""Keeps prompts and keys out of the messages of errors, which end up on spans and in logs."""

from __future__ import annotations

import re
from collections.abc import Iterable


def discreet(error: BaseException, sent: Iterable[str], *, secrets: Iterable[object] = ()) -> str:
    """What happened, in the provider's words unless they repeat the prompt, and never with a key.

    Args:
        error: what a provider's client raised.
        sent: the texts of the request.
        secrets: keys and parts of addresses that may appear in the words. What is no string, or too short for a key, is ignored.
    """
    words = getattr(error, "message", None)
    words = words if isinstance(words, str) and words else str(error)
    keys = {secret for secret in secrets if isinstance(secret, str) and len(secret) >= _SHORTEST_KEY}
    for key in sorted(keys, key=len, reverse=True):  # one may be a part of another
        words = words.replace(key, "[key]")
    words = _KEY.sub("[key]", words)[:_MAX_MESSAGE]
    if _quotes(words, "\n".join(sent)):
        words = "the endpoint's message repeats the request and is left out"
    status = getattr(error, "status_code", None)
    return f"HTTP {status}: {words}" if status else words


def _quotes(words: str, prompt: str) -> bool:
    return any(words[start : start + _QUOTATION] in prompt for start in range(len(words) - _QUOTATION + 1))


_KEY = re.compile(r"\bsk-[\w*-]+")
_SHORTEST_KEY = 5
_QUOTATION = 24
_MAX_MESSAGE = 280
