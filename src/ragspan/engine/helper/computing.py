"""Asks judges that compute in the helper process, or, where there can be none, in a thread.

Guarantees:
- A question about which helpers died fails. It is not tried in a thread: what kills them would kill the application.
- The application's event loops, the worker's among them, never compute: without a helper, a single thread does, or the
  judge's own.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import pickle
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from ragspan.engine._boundary import attempt
from ragspan.engine._threads import DaemonThreads
from ragspan.engine.helper import wire
from ragspan.engine.helper.client import HelperClient, HelperUnavailable, log_note
from ragspan.engine.helper.connection import Helper, HelperLost, HelperRefusal
from ragspan.exceptions import JudgeError
from ragspan.judges.computing import ComputingPlace, computing_at, only_waits
from ragspan.judges.session import report_usage
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MAX_QUESTIONS = 64  # that the helper has not answered: enough to keep it busy
_keys = itertools.count(1)


class Desk(ComputingPlace, Protocol):
    """Where the questions about one record are put."""

    def close(self) -> None:
        """There will be no more questions about this record."""
        ...


class Computing(Protocol):
    """Where the judges of an engine compute."""

    def desk_for(self, record: RagRecord) -> Desk: ...

    def prepare_for_exit(self) -> None: ...

    def hang_up(self) -> None:
        """There will be no more questions. Called in the worker's loop's thread, before the loop is wound down."""
        ...

    def let_go(self) -> None:
        """Wait for what was hung up on to end, a second at most. Called in the same thread, when there is no loop."""
        ...

    def close_for_good(self) -> None:
        """The engine is shut down."""
        ...


class ThreadComputing:
    """Computes in one thread of this process. Judges that have threads of their own take none of its time."""

    def __init__(self) -> None:
        self._threads = DaemonThreads(1, name="ragspan-judge")

    async def compute(
        self, judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        if only_waits(getattr(judge, question)):
            with computing_at(None):
                return await getattr(judge, question)(record, *args, **kwargs)
        context = contextvars.copy_context()
        call = self._threads.submit(context.run, attempt, _judge, judge, question, record, args, kwargs)
        answer, error = await asyncio.wrap_future(call)
        if error is not None:
            raise error
        return answer

    def desk_for(self, record: RagRecord) -> Desk:  # noqa: ARG002 - the same for all of them
        return self

    def close(self) -> None:
        """A desk has nothing to clear away."""

    def prepare_for_exit(self) -> None:
        self._threads.prepare_for_exit()

    def hang_up(self) -> None:
        """The thread is no part of the loop."""

    def let_go(self) -> None:
        """Nor does it go with it."""

    def close_for_good(self) -> None:
        self._threads.shutdown(cancel_futures=True)


class HelperComputing:
    """Computes in a helper process that is started with the first question."""

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self.client = HelperClient(lambda: ("judge",), max_questions=_MAX_QUESTIONS, log=log, on_note=log_note)
        self._thread = ThreadComputing()
        self._unfit: set[type] = set()

    def desk_for(self, record: RagRecord) -> Desk:
        return _HelperDesk(self, record)

    def prepare_for_exit(self) -> None:
        self._thread.prepare_for_exit()

    def hang_up(self) -> None:
        self.client.hang_up()

    def let_go(self) -> None:
        self.client.let_go()

    def close_for_good(self) -> None:
        self._thread.close_for_good()

    def travels(self, judge: object) -> bool:
        return type(judge) not in self._unfit

    def keep_here(self, judge: object, reason: str) -> None:
        """This judge, and others of its kind, are for the thread."""
        self._unfit.add(type(judge))
        kind = type(judge).__name__
        self._log.trouble(
            f"unfit {kind}", "%s computes in a thread of the application, not in the helper: %s", kind, reason
        )

    async def in_thread(
        self, judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        return await self._thread.compute(judge, question, record, args, kwargs)


class _HelperDesk:
    """The questions about one record, which is sent with the first of them."""

    def __init__(self, computing: HelperComputing, record: RagRecord) -> None:
        self._computing = computing
        self._record = record
        self._key = next(_keys)
        self._sent_to: Helper | None = None
        self._is_closed = False

    async def compute(
        self, judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        if record is not self._record or self._is_closed:  # of a metric with ways of its own
            return await self._compute_elsewhere(judge, question, record, args, kwargs)
        if self._computing.travels(judge):
            try:
                kind, answer = await self._ask(judge, question, args, kwargs)
            except HelperUnavailable:
                pass
            except HelperLost:
                raise JudgeError("helper_died", "the helper process died while it judged this record") from None
            except HelperRefusal as refusal:
                raise JudgeError("helper_error", str(refusal)) from None
            else:
                if kind == "verdicts":
                    return _verdicts_of(answer)
                if kind == "failed":
                    error_type, message, outage = answer
                    raise JudgeError(error_type, message, outage=outage)
                self._computing.keep_here(judge, answer)
        return await self._computing.in_thread(judge, question, record, args, kwargs)

    def close(self) -> None:
        self._is_closed = True
        if self._sent_to is not None:
            self._sent_to.tell("forget", self._key)

    async def _compute_elsewhere(
        self, judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        desk = _HelperDesk(self._computing, record)
        try:
            return await desk.compute(judge, question, record, args, kwargs)
        finally:
            desk.close()

    async def _ask(self, judge: object, question: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            packed_judge, packed_arguments = pickle.dumps(judge), pickle.dumps((args, dict(kwargs)))
        except Exception as error:  # noqa: BLE001 - of any judge
            return "unfit", f"{type(error).__name__}: {error}"

        def payload_for(helper: Helper) -> tuple[Any, ...]:
            record = None if helper is self._sent_to else wire.packed_for_judges(self._record)
            self._sent_to = helper
            return packed_judge, question, self._key, record, packed_arguments

        return await self._computing.client.ask("judge", payload_for)


class _Loop:
    """The event loop of a thread that judges, for some judges wait as well. It lives as long as the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.run = self._loop.run_until_complete

    def __del__(self) -> None:
        self._loop.close()


class _Own(threading.local):
    def __init__(self) -> None:
        self.loop = _Loop()  # once a thread: making one takes longer than a question to the overlap judge


_own = _Own()


def _judge(judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """In the thread: the judge's answer."""
    with computing_at(None):
        return _own.loop.run(getattr(judge, question)(record, *args, **kwargs))


def _verdicts_of(answer: bytes) -> object:
    verdicts, usage = wire.loads(answer)
    if usage is not None:
        report_usage(usage)
    return verdicts
