"""What errors of a provider say: whether the service is out, and which words may be shown in logs and on spans: no prompt, no key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_OUT = frozenset({401, 402, 403, 404, 407, 408, 425, 429})
"""No key, no money, no such model, too many requests: the next request will fail as well. So it will from 500 on."""
_NO_MONEY_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Of OpenAI, which says 429 to it, as to too many requests."""
_ABOUT_THE_REQUEST = re.compile(
    r"Context(?:Window|Length|Overflow)|ContentFilter|LengthFinish|Blocked|Refus|Parser|Safety"
)
"""In the names of exceptions without a status."""
_ABOUT_THE_SERVICE = re.compile(
    r"Connect(?:ion)?(?:Error|Timeout)|(?:Read|Write|Pool|API)Timeout|ServiceUnavailable|Overloaded"
)
_TAG = re.compile(r"<(?:style|script)\b[^<]*|<[^<>]*(?:>|$)", re.IGNORECASE)
"""Takes time in proportion to the page, whatever it holds."""
_MAX_PAGE = 100_000  # characters
_KEY = re.compile(r"\bsk-[\w*-]+")
_SHORTEST_KEY, _QUOTATION, _MAX_MESSAGE = 5, 24, 280


def is_outage(error: BaseException) -> bool:
    """Whether other requests would fail as well now.

    The HTTP status of the error or of its cause decides. Without one it is an outage, unless the type says that the request or
    the reply is wrong: `ValueError`, `TypeError`, or a name such as `ContextWindowExceeded`.
    """
    status = status_of(error)
    if status is not None:
        return status in _OUT or status >= 500  # noqa: PLR2004 - of HTTP
    if isinstance(error, OSError):  # `requests` has some that are a `ValueError`, too
        return True
    is_wrong = isinstance(error, (ValueError, TypeError, NotImplementedError))
    return not is_wrong and not any(_ABOUT_THE_REQUEST.search(kind.__name__) for kind in type(error).__mro__)


def is_plain_outage(error: BaseException) -> bool:
    """Whether an error that nobody has looked at says clearly that a service is out: by its status, or as a connection."""
    if status_of(error) is not None or isinstance(error, (ConnectionError, TimeoutError)):
        return is_outage(error)
    return any(_ABOUT_THE_SERVICE.search(kind.__name__) for kind in type(error).__mro__)


def status_of(error: BaseException) -> int | None:
    """The HTTP status of the error or of its cause; 402 where the words say that there is no money left, whatever the status.

    Clients keep it on the error, on its response, or in the response's metadata (AWS).
    """
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
        places = [getattr(one, name, None) for name in ("status_code", "status", "http_status", "code")]
        places += [getattr(response, "status_code", None)]
        places += [metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None]
        for status in places:
            if isinstance(status, int) and 400 <= status < 600:  # noqa: PLR2004 - of HTTP
                return 402 if getattr(error, "code", None) in _NO_MONEY_CODES else int(status)
    return None


def redacted_message(error: BaseException, sent: Iterable[str], *, secrets: Iterable[object] = ()) -> str:
    """The provider's words about an error, without keys; a note in their place if they repeat the prompt.

    `sent` are the texts of the request. Of the secrets, what is not a string or too short for a key is ignored.
    """
    words = getattr(error, "message", None)
    words = words if isinstance(words, str) and words else str(error)
    body = getattr(error, "body", None)  # `openai` shows no more of it than the message
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], Mapping):  # Google
        body = body[0].get("error") or body[0]
    if isinstance(body, str):
        words = " ".join(_TAG.sub(" ", body[:_MAX_PAGE]).split()) or words
    elif isinstance(body, Mapping) and isinstance(body.get("message"), str):
        words = body["message"]
    elif body:
        words = json.dumps(body, default=str, ensure_ascii=False)
    keys = {secret for secret in secrets if isinstance(secret, str) and len(secret) >= _SHORTEST_KEY}
    for key in sorted(keys, key=len, reverse=True):  # one may be a part of another
        words = words.replace(key, "[key]")
    words, prompt = _KEY.sub("[key]", words)[:_MAX_MESSAGE], "\n".join(sent)
    if any(words[start : start + _QUOTATION] in prompt for start in range(len(words) - _QUOTATION + 1)):
        words = "the endpoint's message repeats the request and is left out"
    status = getattr(error, "status_code", None)
    return f"HTTP {status}: {words}" if status else words
