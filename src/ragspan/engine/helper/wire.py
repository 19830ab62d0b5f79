"""What goes from the application to its helper: pickles of plain data and of ragspan's own.

Records hold what frameworks put into them: strings of classes of their own, metadata with clients and locks. In the
helper these would import the frameworks, or not be readable at all. So whatever is neither plain nor ragspan's becomes
the plain thing that it is a kind of, or else the name of its type, as in a record's JSON.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from types import FunctionType
from typing import Any

from ragspan.records import Generation, RagRecord, Retrieval, RetrievedContext, SpanAnchor

_PROTOCOL = 5
_DATA: tuple[type[Any], ...] = (RagRecord, RetrievedContext, Retrieval, Generation, SpanAnchor)


def dumps(message: object) -> bytes:
    """The message as bytes.

    Raises:
        Exception: something in it cannot be read, such as data that is nested too deep.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, _PROTOCOL).dump(message)
    return buffer.getvalue()


def loads(data: bytes | memoryview) -> Any:
    """What `dumps`, or `pickle` in the helper, made these bytes from."""
    return pickle.loads(data)  # noqa: S301 - the two processes are one program, and nobody else holds their socket


def packed(record: RagRecord) -> bytes:
    """A record, whatever its metadata holds."""
    try:
        return dumps(record)
    except Exception:  # noqa: BLE001 - the framework's objects: nested too deep, or with properties that raise
        return dumps(RagRecord.from_json(record.to_json()))


def for_judging(record: RagRecord) -> RagRecord:
    """What judges ask about, without what only costs time on the way: searches, model calls, metadata."""
    return RagRecord(
        question=record.question,
        contexts=None if record.contexts is None else map(_without_metadata, record.contexts),
        response=record.response,
        status=record.status,
        record_id=record.record_id,
        framework=record.framework,
        name=record.name,
        started_ns=record.started_ns,
        ended_ns=record.ended_ns,
    )


def _without_metadata(context: RetrievedContext) -> RetrievedContext:
    if not context.metadata:
        return context
    return RetrievedContext(
        text=context.text,
        id=context.id,
        rank=context.rank,
        score=context.score,
        source=context.source,
        truncated=context.truncated,
    )


class _Pickler(pickle.Pickler):
    """A pickler is asked about everything but plain strings, numbers, lists, tuples, sets and dictionaries."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        known = _REDUCE.get(kind)
        if known is not None:
            build, values_of = known
            return build, values_of(value)
        named = value if kind is type or kind is FunctionType else kind  # these are pickled by their name
        package = named.__module__.partition(".")[0]
        is_ours = package == "ragspan" or (kind is type and package == "builtins") or value is _build
        return NotImplemented if is_ours else _as_plain(value)


def _as_plain(value: Any) -> tuple[Any, tuple[Any, ...]]:
    """How to build the plain thing that the value is a kind of."""
    if isinstance(value, str):
        return str, (str.__str__(value),)
    if isinstance(value, int):
        return int, (int(value),)
    if isinstance(value, float):
        return float, (float(value),)
    if isinstance(value, Mapping):
        return dict, (list(value.items()),)
    if isinstance(value, (list, tuple)):
        return list, (list(value),)
    return str, (type(value).__name__,)


def _build(place: int, *values: Any) -> Any:
    return _DATA[place](**dict(zip(_FIELDS[place], values, strict=True)))


def _values(place: int, get: attrgetter[tuple[Any, ...]], value: Any) -> tuple[Any, ...]:
    return (place, *get(value))


_FIELDS = [tuple(field.name for field in fields(kind)) for kind in _DATA]
FORMAT = repr(_FIELDS)
"""Tells versions of ragspan apart whose records differ."""
_REDUCE = {
    kind: (_build, functools.partial(_values, place, attrgetter(*_FIELDS[place]))) for place, kind in enumerate(_DATA)
}
"""By type: what builds it there, and from what. Field by field, because the way that dataclasses have takes three times
as long."""
