"""What a helper does that answers questions to judges."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from typing import Any

from ragspan.engine.helper import wire
from ragspan.engine.helper.link import Link
from ragspan.exceptions import JudgeError
from ragspan.judges.usage import metered
from ragspan.records import RagRecord

_MAX_JUDGES = 16


def serve(_: Link) -> Judging:
    return Judging()


class Judging:
    """Asks copies of the application's judges.

    A record is sent with the first question about it and kept until it is forgotten, so that a judge that reads it once
    for all questions can do so here, too.
    """

    def __init__(self) -> None:
        self._judges: OrderedDict[bytes, Any] = OrderedDict()
        self._records: dict[int, RagRecord] = {}

    def handle(self, kind: str, payload: list[Any]) -> Awaitable[object] | None:
        if kind == "judge":
            judge, question, key, record, args, kwargs = payload
            return self._judge(judge, question, self._record(key, record), args, kwargs)
        for key in payload:  # "forget"
            self._records.pop(key, None)
        return None

    def finish(self) -> None:
        """Nobody waits for answers any more."""

    def _record(self, key: int, record: bytes | None) -> RagRecord:
        if record is not None:
            self._records[key] = wire.loads(record)
        return self._records[key]

    async def _judge(
        self, judge: bytes, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[str, Any, Any]:
        """`("verdicts", them, usage)`; else `("failed", error type, message)` or `("unfit", reason, None)`."""
        try:
            copy = self._copy_of(judge)
        except Exception as error:  # noqa: BLE001 - whatever importing the judge's module raises
            return "unfit", f"{type(error).__name__}: {error}", None
        try:
            with metered() as meter:
                return "verdicts", await getattr(copy, question)(record, *args, **kwargs), meter.total
        except JudgeError as error:
            return "failed", error.error_type, str(error)
        except Exception as error:  # noqa: BLE001 - the judge's
            return "failed", type(error).__name__, str(error)

    def _copy_of(self, judge: bytes) -> Any:
        copy = self._judges.get(judge)
        if copy is None:
            copy = self._judges[judge] = pickle.loads(judge)  # noqa: S301 - from the application, whose helper this is
            if len(self._judges) > _MAX_JUDGES:
                self._judges.popitem(last=False)
        return copy
