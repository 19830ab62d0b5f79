"""Computes in batches, in its own thread.

Guarantees:
- Asking never waits: the answer is a future. Event loops stay free.
- No batch waits to be filled. Batches grow because questions come while one is computed; questions of different records,
  loops and threads share them.
- Pairs are computed in the order in which they come. The pairs of a batch, and their tokens (its memory), are bounded.
- The first question loads the classifier, once. If that fails, all questions fail at once for a minute; the next one tries
  again.
- An exception of the classifier fails the questions in that batch and no others. Cancelled questions are dropped.
- The thread lives as long as there is work; the process never waits for it.
- The child of a fork begins without questions and without a classifier.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Protocol

from ragspan.exceptions import JudgeError
from ragspan.forks import keep_inherited, watch_forks
from ragspan_hhem.prompt import FittedPair, Pair, PairFinding

_PAUSE = 60.0  # seconds after a load that failed
_MAX_TOKENS = 8192
"""Of a batch, unless its first pair alone has more. A token takes some 40 kB while it is computed."""
_MAX_REASON = 300  # characters

_logger = logging.getLogger("ragspan")


class Classifier(Protocol):
    """What the thread loads and asks."""

    def fit(self, pairs: Sequence[Pair]) -> list[FittedPair]: ...

    def probabilities(self, prompts: Sequence[Sequence[int]]) -> list[float]: ...


class _Question:
    """Pairs that are asked about together; the answer has a finding for each, in their order."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = pairs
        self.answer: Future[list[PairFinding]] = Future()
        self._findings: list[PairFinding] = []

    @property
    def is_over(self) -> bool:
        """Answered, failed or cancelled."""
        return self.answer.done()

    def take(self, finding: PairFinding) -> None:
        """Take the finding for the first pair that has none."""
        self._findings.append(finding)
        if len(self._findings) == len(self.pairs):
            with contextlib.suppress(InvalidStateError):  # cancelled just now
                self.answer.set_result(self._findings)

    def fail(self, error: JudgeError) -> None:
        with contextlib.suppress(InvalidStateError):
            self.answer.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One pair of a question, ready to be computed."""

    question: _Question
    pair: FittedPair


@dataclass(frozen=True, slots=True)
class _Failure:
    """Of a load."""

    error_type: str
    message: str
    until: float
    """When to try again, on the clock."""

    def error(self) -> JudgeError:
        return JudgeError(self.error_type, self.message, outage=True)


class BatchComputer:
    """Answers questions with a classifier that it loads when it is first needed.

    Args:
        load: makes the classifier, which may take seconds; raises `JudgeError`.
        batch_size: pairs in a batch, at most.
        clock: seconds that do not go backwards.
    """

    def __init__(
        self, load: Callable[[], Classifier], *, batch_size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._batch_size = batch_size
        self._clock = clock
        self._begin()
        watch_forks(self, BatchComputer.begin_anew)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        # Under the lock:
        self._arrived: list[_Question] = []
        self._is_at_work = False
        self._failure: _Failure | None = None
        # The thread's own:
        self._line: list[_Waiting] = []
        self._classifier: Classifier | None = None

    def begin_anew(self) -> None:
        """In the child of a fork: the lock may be held by a thread that is not there, and the work is the parent's.

        The inherited objects are kept for good, because only the parent may release a device's memory.
        """
        keep_inherited((self._arrived, self._line, self._classifier))
        self._begin()

    def ask(self, pairs: Sequence[Pair]) -> Future[list[PairFinding]]:
        """A future of the findings for these pairs, of which there is at least one.

        Raises:
            JudgeError: the classifier could not be loaded less than a minute ago, or no thread can be started.
        """
        question = _Question(pairs)
        with self._lock:
            failure = self._failure
            if failure is not None and self._clock() < failure.until:
                raise failure.error()
            if not self._is_at_work:
                self._start_thread()
            self._arrived.append(question)
        return question.answer

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name="ragspan-hhem", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit of the system, or the end of the interpreter
            raise JudgeError("hhem_failed", "no thread can be started") from None
        self._is_at_work = True

    def _work(self) -> None:
        """In the thread: load the classifier if needed, and compute until there are no questions."""
        while self._has_work():
            self._take_turn()

    def _take_turn(self) -> None:
        try:
            self._classifier = self._classifier or self._load()
        except BaseException as error:  # noqa: BLE001 - importing torch runs much code that is not ours
            self._fail_to_load(error)
            return
        for question in self._take_arrived():
            self._line_up(question, self._classifier)
        self._compute(self._classifier)

    def _has_work(self) -> bool:
        with self._lock:
            self._arrived = [question for question in self._arrived if not question.is_over]
            self._line = [waiting for waiting in self._line if not waiting.question.is_over]
            self._is_at_work = bool(self._arrived or self._line)
            return self._is_at_work

    def _take_arrived(self) -> list[_Question]:
        with self._lock:
            arrived, self._arrived = self._arrived, []
        return [question for question in arrived if not question.is_over]  # some are cancelled during a load

    def _fail_to_load(self, error: BaseException) -> None:
        reason = _judge_error(error)
        failure = _Failure(reason.error_type, str(reason), until=self._clock() + _PAUSE)
        with self._lock:
            self._failure = failure
        with contextlib.suppress(Exception):  # a handler of the application's
            _logger.warning("HHEM does not score (%s): %s", failure.error_type, failure.message)
        for question in self._take_arrived():
            question.fail(failure.error())

    def _line_up(self, question: _Question, classifier: Classifier) -> None:
        try:
            fitted = classifier.fit(question.pairs)
        except BaseException as error:  # noqa: BLE001 - what a tokenizer raises need not be an `Exception`
            question.fail(_judge_error(error))
        else:
            self._line += [_Waiting(question, pair) for pair in fitted]

    def _compute(self, classifier: Classifier) -> None:
        count = _batch_length(self._line, self._batch_size)
        batch, self._line = self._line[:count], self._line[count:]
        if not batch:
            return
        try:
            probabilities = classifier.probabilities([waiting.pair.tokens for waiting in batch])
            found = [*zip(batch, probabilities, strict=True)]
        except BaseException as error:  # noqa: BLE001 - nor need what torch raises
            for waiting in batch:
                waiting.question.fail(_judge_error(error))
        else:
            for waiting, probability in found:
                waiting.question.take(PairFinding(probability=probability, remark=waiting.pair.remark))


def _batch_length(line: Sequence[_Waiting], batch_size: int) -> int:
    """How many pairs of the line are computed next: at least one, if there is one."""
    tokens = 0
    for count, waiting in enumerate(line[:batch_size]):
        tokens += len(waiting.pair.tokens)
        if count and tokens > _MAX_TOKENS:
            return count
    return min(len(line), batch_size)


def _judge_error(error: BaseException) -> JudgeError:
    if isinstance(error, JudgeError):
        return error
    reason = " ".join(str(error).split())[:_MAX_REASON]
    return JudgeError("hhem_failed", f"HHEM failed with {type(error).__name__}: {reason}")
