"""Asks the classifier in a thread of its own.

Guarantees:
- Asking never waits: the answer is a future. Event loops stay free.
- Questions are answered in the order in which they come. What is cancelled before its turn is not computed.
- The first question loads the classifier, once. If that fails, all questions fail for a minute; the next one tries again.
- An exception of the classifier fails that question and no other.
- The thread lives as long as there is work; the process never waits for it.
- The child of a fork begins without questions and without a classifier.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeAlias

from ragspan.exceptions import JudgeError
from ragspan.forks import keep_inherited, watch_forks
from ragspan.throttled_log import log_line
from ragspan_hhem.prompt import Pair, PairFinding

_PAUSE = 60.0  # seconds after a load that failed
_MAX_REASON = 300  # characters

_Answer: TypeAlias = "Future[list[PairFinding]]"


class Classifier(Protocol):
    """What the thread loads and asks."""

    def findings(self, pairs: Sequence[Pair]) -> Iterator[list[PairFinding]]: ...


class BatchComputer:
    """Answers questions with a classifier that it loads when it is first needed.

    Args:
        load: makes the classifier, which may take seconds; raises `JudgeError`.
        clock: seconds that do not go backwards.
    """

    def __init__(self, load: Callable[[], Classifier], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._begin()
        watch_forks(self, BatchComputer.begin_anew)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        # Under the lock:
        self._questions: deque[tuple[Sequence[Pair], _Answer]] = deque()
        self._is_at_work = False
        # The thread's own:
        self._classifier: Classifier | None = None
        self._failure: JudgeError | None = None
        self._next_load = 0.0

    def begin_anew(self) -> None:
        """In the child of a fork: the lock may be held by a thread that is not there, and the work is the parent's.

        The inherited objects are kept for good, because only the parent may release a device's memory.
        """
        keep_inherited((self._questions, self._classifier))
        self._begin()

    def ask(self, pairs: Sequence[Pair]) -> _Answer:
        """A future of a finding for each of these pairs, in their order.

        Raises:
            JudgeError: no thread can be started.
        """
        answer: _Answer = Future()
        with self._lock:
            if not self._is_at_work:
                try:
                    threading.Thread(target=self._work, name="ragspan-hhem", daemon=True).start()
                except RuntimeError:  # a limit of the system, or the end of the interpreter
                    raise JudgeError("hhem_failed", "no thread can be started") from None
                self._is_at_work = True
            self._questions.append((pairs, answer))
        return answer

    def _work(self) -> None:
        """In the thread: answer questions until there are none."""
        while True:
            with self._lock:
                self._is_at_work = bool(self._questions)
                if not self._is_at_work:
                    return
                pairs, answer = self._questions.popleft()
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result([one for batch in self._loaded().findings(pairs) for one in batch])
                except BaseException as error:  # noqa: BLE001 - what torch or a tokenizer raises need not be an `Exception`
                    answer.set_exception(_judge_error(error))

    def _loaded(self) -> Classifier:
        """The classifier.

        Raises:
            JudgeError: it cannot be loaded, now or less than a minute ago.
        """
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
        return self._classifier


def _judge_error(error: BaseException) -> JudgeError:
    if isinstance(error, JudgeError):
        return error
    reason = " ".join(str(error).split())[:_MAX_REASON]
    return JudgeError("hhem_failed", f"HHEM failed with {type(error).__name__}: {reason}")
