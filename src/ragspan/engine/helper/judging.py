"""What a helper does that answers questions to judges."""

from __future__ import annotations

import asyncio
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

from ragspan.engine._metric_run import failure_of
from ragspan.engine.helper import wire
from ragspan.engine.helper.link import Link
from ragspan.judges.session import metered
from ragspan.outcomes import Usage
from ragspan.records import RagRecord

_MAX_JUDGES = 16
_T = TypeVar("_T")


def serve(_: Link) -> Judging:
    return Judging()


class Judging:
    """Asks copies of the application's judges.

    A record is sent with the first question about it and kept until it is forgotten, so that a judge that reads it once
    for all questions can do so here, too. Nobody waits any more for what was asked about a forgotten record: a judge that is
    still at it is told to stop, or else those who do wait would have to wait for that, too.
    """

    def __init__(self) -> None:
        self._judges: OrderedDict[bytes, Any] = OrderedDict()
        self._records: dict[int, RagRecord] = {}
        self._at_work: defaultdict[int, set[asyncio.Task[Any]]] = defaultdict(set)

    def handle(self, kind: str, payload: list[Any]) -> Awaitable[object] | None:
        if kind == "judge":
            judge, question, key, record, arguments = payload
            return self._work_for(key, self._judge(judge, question, self._record(key, record), arguments))
        for key in payload:  # "forget"
            self._records.pop(key, None)
            for task in self._at_work.pop(key, ()):
                task.cancel()
        return None

    @property
    def time_to_work(self) -> float:
        return 0.0  # nobody waits for verdicts any more

    def finish(self, timeout: float) -> None:
        """Nobody waits for answers any more."""

    def _record(self, key: int, data: bytes | None) -> RagRecord:
        if data is not None:
            self._records[key] = wire.unpacked_for_judges(data)
        return self._records[key]

    async def _work_for(self, key: int, judging: Awaitable[_T]) -> _T:
        """What it returns, unless the record is forgotten before."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._at_work[key].add(task)
        try:
            return await judging
        finally:
            self._at_work[key].discard(task)
            if not self._at_work[key]:
                del self._at_work[key]

    async def _judge(self, judge: bytes, question: str, record: RagRecord, arguments: bytes) -> tuple[str, Any]:
        """`("verdicts", them and their usage)`; else `("failed", (error type, message, outage))` or `("unfit", reason)`."""
        try:
            copy = self._copy_of(judge)
            args, kwargs = pickle.loads(arguments)  # noqa: S301 - from the application, whose helper this is
        except Exception as error:  # noqa: BLE001 - whatever importing the judge's module raises
            return "unfit", _text_of(error)
        try:
            with metered() as meter:
                verdicts = await getattr(copy, question)(record, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - the judge's, which must not end the helper
            failure = failure_of(error)
            return "failed", (failure.error_type, failure.message, failure.outage)
        try:
            return "verdicts", wire.dumps((verdicts, None if meter.total == Usage() else meter.total))
        except Exception as error:  # noqa: BLE001 - verdicts of the judge's own kind
            return "unfit", _text_of(error)

    def _copy_of(self, judge: bytes) -> Any:
        copy = self._judges.get(judge)
        if copy is None:
            copy = self._judges[judge] = pickle.loads(judge)  # noqa: S301 - from the application, whose helper this is
            if len(self._judges) > _MAX_JUDGES:
                self._judges.popitem(last=False)
        return copy


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
