"""What goes to the helper, and what a record looks like on its way: a pickle of plain data and of ragspan's own.

Records contain what frameworks put into them: strings of their own classes, metadata with clients and locks. The helper
would have to import the frameworks for these, or could not read them at all. So a value that is neither plain nor a part
of a record becomes what it is in a record's JSON: the plain value that it is a kind of, or else the name of its type.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import pickletools
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ragspan.engine.threads import call_guarded
from ragspan.messages import ErrorReport, Message, ToolRequest
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score
from ragspan.record_json import plain
from ragspan.records import (
    Background,
    Generation,
    RagRecord,
    Reranking,
    Retrieval,
    RetrievedContext,
    SpanAnchor,
    ToolCall,
)
from ragspan.usage import Usage

_OF_RECORDS: tuple[type[Any], ...] = (
    *(RagRecord, RetrievedContext, Background, SpanAnchor, Retrieval, Reranking, ToolCall, Generation),
    *(Message, ToolRequest, ErrorReport),
)
_OF_OUTCOMES: tuple[type[Any], ...] = (Score, Cause, NotApplicable, MetricFailure, Usage)
_VALUES_OF = {kind: attrgetter(*(field.name for field in fields(kind))) for kind in _OF_RECORDS}
_BY_NAME = frozenset({*_OF_RECORDS, str, int, float, dict, list})
"""Types whose names may be in a pickled record."""
FORMAT = repr([[field.name for field in fields(kind)] for kind in (*_OF_RECORDS, *_OF_OUTCOMES)])
"""Differs between versions of ragspan whose data differ."""


def dumps(record: RagRecord) -> bytes:
    """A record, whatever its metadata holds."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(record)
    except Exception:  # noqa: BLE001 - metadata that is nested too deep, a derived class of a record
        buffer = io.BytesIO()
        _Pickler(buffer).dump(RagRecord.from_json(record.to_json()))
    return buffer.getvalue()


def loads(data: bytes) -> RagRecord:
    record: RagRecord = pickle.loads(data)  # noqa: S301 - from the application, whose helper this is
    return record


def reason_not_to_send(value: object) -> str | None:
    """Why the helper cannot make a copy of a metric, an emitter or the like; None if it can."""
    pickled, error = call_guarded(pickle.dumps, value)
    if pickled is None:
        return f"{type(error).__name__}: {error}"
    if any(argument == "__main__" for _, argument, _ in pickletools.genops(pickled)):
        return f"{type(value).__name__} needs the main module, which is not run again there: move what it is defined in"
    return None


class _Pickler(pickle.Pickler):
    """Its method is called for everything but plain strings, numbers, lists, tuples, sets and dictionaries."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if (values_of := _VALUES_OF.get(kind)) is not None:  # what its own methods make of it, in a third of the time
            return copyreg.__newobj__, (kind,), values_of(value)  # type: ignore[attr-defined]
        if kind is type and value in _BY_NAME:
            return NotImplemented
        if issubclass(kind, _OF_RECORDS):
            raise TypeError(f"the helper does not know the class {kind.__name__}")
        made, error = call_guarded(plain, value)  # the value's own methods may raise
        made = kind.__name__ if error is not None else made
        return type(made), (made,)
