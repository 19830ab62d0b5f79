"""Asks the classifier in a thread of its own, so that event loops stay free: an answer is a future."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ragspan.engine.threads import DaemonThreads
from ragspan.exceptions import JudgeError
from ragspan.process import keep_inherited, watch_forks
from ragspan.throttled_log import log_line
from ragspan_hhem.model import HHEM, Finding, error_text

if TYPE_CHECKING:
    from ragspan_hhem.prompt import Pair

_PAUSE = 60.0  # seconds after a load that failed


class BatchComputer:
    """Answers questions in the order in which they come, with a classifier that it loads, once, when it is first needed.

    If the load fails, all questions fail for a minute; the next one tries again. What is cancelled before its turn is not
    computed. The process never waits for the thread.

    Args:
        load: makes the classifier, which may take seconds; raises `JudgeError`.
        clock: seconds that do not go backwards.
    """

    def __init__(self, load: Callable[[], HHEM], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._begin()
        watch_forks(self, BatchComputer.begin_anew)

    def _begin(self) -> None:
        self._thread = DaemonThreads(1, name="ragspan-hhem")
        # The thread's own:
        self._classifier: HHEM | None = None
        self._failure: JudgeError | None = None
        self._next_load = 0.0

    def begin_anew(self) -> None:
        """In the child of a fork: without the parent's questions, which are kept for good, as is what lies on a device."""
        keep_inherited((self._thread, self._classifier))
        self._begin()

    def ask(self, pairs: Sequence[Pair]) -> Future[list[Finding]]:
        """A future of a finding for each of these pairs, in their order."""
        return self._thread.submit(self._answer, pairs)

    def _answer(self, pairs: Sequence[Pair]) -> list[Finding]:
        if self._classifier is None and self._clock() >= self._next_load:
            try:
                self._classifier = self._load()
            except BaseException as error:  # noqa: BLE001 - importing torch runs much code that is not ours
                self._failure = _judge_error(error)
                self._next_load = self._clock() + _PAUSE
                log_line(logging.WARNING, "HHEM does not score (%s): %s", self._failure.error_type, self._failure)
        if self._classifier is None:
            assert self._failure is not None  # noqa: S101 - else it was loaded
            raise JudgeError(self._failure.error_type, str(self._failure), outage=True)
        try:
            return self._classifier.findings(pairs)
        except BaseException as error:  # noqa: BLE001 - what torch or a tokenizer raises need not be an `Exception`
            raise _judge_error(error) from None


def _judge_error(error: BaseException) -> JudgeError:
    return (
        error if isinstance(error, JudgeError) else JudgeError("hhem_failed", f"HHEM failed with {error_text(error)}")
    )
