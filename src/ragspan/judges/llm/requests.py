"""Around one request to a model: whether it is sent at all, what it may spend and spent, and what its errors mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.session import Price, report_usage, reserve
from ragspan.text.limits import SIZE_OF_TOKEN, size_of
from ragspan.usage import Usage

_FAILURES = 5
_PAUSE = 30.0  # seconds
_OUT = frozenset({401, 402, 403, 404, 407, 408, 425, 429})
"""No key, no money, no such model, too many requests: the next request will fail as well. So it will after a redirect and from 500 on."""
_ABOUT_THE_SERVICE = re.compile(r"Connect(?:ion)?Error|Timeout|ServiceUnavailable|Overloaded|gaierror")
"""In the names of exceptions without a status."""
_NO_MONEY_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Of OpenAI, which says 429 to it, as to too many requests."""
_TAG = re.compile(r"<(?:style|script)\b[^<]*|<[^<>]*(?:>|$)", re.IGNORECASE)
_KEY = re.compile(r"\bsk-[\w*-]+")
_SHORTEST_KEY, _QUOTATION, _MAX_MESSAGE, _MAX_PAGE = 5, 24, 280, 100_000


def is_outage(error: BaseException) -> bool:
    """Whether other requests would fail as well now: by the HTTP status of the error or of its cause, else by its type."""
    status = status_of(error)
    if status is not None:
        return status in _OUT or not 400 <= status < 500  # noqa: PLR2004 - of HTTP
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
            if isinstance(status, int) and 300 <= status < 600:  # noqa: PLR2004 - of HTTP
                return 402 if getattr(error, "code", None) in _NO_MONEY_CODES else int(status)
    return None


def redacted_message(error: BaseException, sent: Iterable[str], *, secrets: Iterable[object] = ()) -> str:
    """The provider's words about an error, without keys; a note in their place if they repeat the prompt.

    `sent` are the texts of the request. Of the secrets, what is not a string or too short for a key is ignored.
    """
    words, body = str(getattr(error, "message", None) or error), getattr(error, "body", None)
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], Mapping):  # Google
        body = body[0].get("error") or body[0]
    told = body.get("message") if isinstance(body, Mapping) else body
    if isinstance(told, str):
        words = " ".join(_TAG.sub(" ", told[:_MAX_PAGE]).split()) or words
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


class CircuitBreaker:
    """Sends no requests while a service is out; `clock` is in seconds that do not go backwards.

    After `_FAILURES` requests in a row that failed because the service is out, all fail at once for `_PAUSE` seconds. Then one is sent as
    a trial: if it fails, or never ends, there is another pause; if it is answered all are sent again. An error about one request counts
    neither as a failure nor as a success: a gateway before a dead model answers such requests, too.

    Any number of threads and event loops may use it. It has no lock, which a fork could leave held for ever: a race costs one
    failure that is not counted, or one trial too many.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0  # in a row
        self._next_trial = 0.0
        self._last: tuple[str, int | None] = "", None
        """What the last failure said, and its HTTP status."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Around one request; raises `JudgeError` if the service is out, and it is not yet time to try again."""
        if self._failures >= _FAILURES:
            wait = self._next_trial - self._clock()
            if wait > 0:
                message = f"{self._failures} requests in a row failed; the next is sent in {wait:.0f} s"
                words, status = self._last
                raise JudgeError("judge_unavailable", f"{message}. The last: {words}", outage=True, status=status)
            self._next_trial = self._clock() + _PAUSE
        try:
            yield
        except BaseException as error:
            known = error if isinstance(error, JudgeError) else None
            # A cancellation is nearly always a time limit.
            is_out = known.outage if known else isinstance(error, asyncio.CancelledError) or is_outage(error)
            is_out = is_out and not isinstance(error, BudgetExhausted)  # which says nothing of the service
            self._failures += is_out
            if is_out:  # other errors than a judge's may quote the prompt
                self._last = str(known) if known else type(error).__name__, status_of(error)
            self._next_trial = self._clock() + (_PAUSE if is_out else 0)
            raise
        self._failures = 0


@contextlib.contextmanager
def charging(
    messages: Sequence[ChatMessage], *, choices: int, price: Price | None, tokens: int
) -> Iterator[Callable[[Sequence[Completion]], None]]:
    """Around one request: sets aside what it is expected to take, with so many choices of about so many tokens each.

    Call what it yields with the completions. A request that fails counts as one request without tokens, unless the endpoint reports
    what it took. What was set aside for a cancelled request stays so: providers charge for its replies. With no price the cost is
    unknown, unless the client reports it. Raises `JudgeError` if the allowance does not suffice.
    """

    def priced(usage: Usage) -> Usage:
        is_due = price is not None and usage.usd is None and (usage.input_tokens > 0 or usage.output_tokens > 0)
        return replace(usage, usd=price.of(usage)) if price is not None and is_due else usage

    input_tokens = sum(size_of(message["content"]) for message in messages) // SIZE_OF_TOKEN + 1
    expected = priced(Usage(requests=1, input_tokens=input_tokens, output_tokens=choices * tokens))
    settle = reserve(expected)

    def charge(completions: Sequence[Completion]) -> None:
        used = sum((priced(completion.usage) for completion in completions), Usage())
        report_usage(used)
        # Many compatible servers report no tokens. What was expected is nearer to the truth than none.
        is_told = used.input_tokens > 0 or used.output_tokens > 0
        charged = used if is_told else replace(expected, usd=expected.usd if used.usd is None else used.usd)
        settle(replace(charged, requests=max(used.requests, 1)))

    try:
        yield charge
    except Exception as error:
        used = priced(error.usage) if isinstance(error, JudgeError) and error.usage is not None else None
        if used is not None:
            report_usage(used)
        settle(used or Usage(requests=1, usd=0.0))
        raise
