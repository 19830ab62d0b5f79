"""Around one request to a model: whether it is sent at all, what it may spend, and what it spent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.llm.errors import is_outage, status_of
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.text.limits import SIZE_OF_TOKEN, size_of
from ragspan.usage import Usage

_FAILURES = 5
_PAUSE = 30.0  # seconds


class CircuitBreaker:
    """Sends no requests while a service is out; `clock` is in seconds that do not go backwards.

    Guarantees:
    - After `_FAILURES` requests in a row that failed because the service is out, all requests fail at once for `_PAUSE` seconds.
      Then one is sent as a trial: if it fails there is another pause, if it is answered all requests are sent again.
    - An error about one request (too long, filtered, malformed) does not count as a failure, nor as a success: a gateway before
      a dead model answers such requests, too. If it was the trial, the next request is the next trial.
    - A trial that never ends, because its thread hangs or its loop died, blocks nothing: after another pause there is the next.

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
