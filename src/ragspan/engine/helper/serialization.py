"""What goes between the application and its helper: pickles of plain data and of ragspan's own.

Records hold what frameworks put into them: strings of classes of their own, metadata with clients and locks. In the
helper these would import the frameworks, or not be readable at all. So whatever is neither plain nor a part of a record
becomes the plain thing that it is a kind of, or else the name of its type, as in a record's JSON.

The dataclasses that travel most are taken apart and built again field by field, because the way that dataclasses have
takes three times as long.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import fields, replace
from operator import attrgetter
from types import FunctionType
from typing import Any

from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score, Usage
from ragspan.records import Generation, RagRecord, Reranking, Retrieval, RetrievedContext, SpanAnchor, ToolCall
from ragspan.step_texts import ErrorReport, Message, ToolRequest

_PROTOCOL = 5
_OF_RECORDS: tuple[type[Any], ...] = (
    *(RagRecord, RetrievedContext, SpanAnchor, Retrieval, Reranking, ToolCall, Generation),
    *(Message, ToolRequest, ErrorReport),
)
_OF_OUTCOMES: tuple[type[Any], ...] = (
    *(Score, Cause, NotApplicable, MetricFailure, Usage),
    *(Vote, Rating, ClaimVerdict, ContextVerdict, ContextRating),
)
_DATA = (*_OF_RECORDS, *_OF_OUTCOMES)


def dumps(outcomes: object) -> bytes:
    """Outcomes, and whatever else pickles.

    Raises:
        Exception: something in it does not.
    """
    return _dumped(_OutcomePickler, outcomes)


loads = pickle.loads
"""What the functions of this module made bytes from. The two processes are one program, and nobody else holds their socket."""


def packed(record: RagRecord) -> bytes:
    """A record, whatever its metadata holds."""
    for simpler in (None, _through_json, _without_metadata):
        try:
            return _dumped(_RecordPickler, record if simpler is None else simpler(record))
        except Exception:  # noqa: BLE001, PERF203, S112 - the framework's objects: nested too deep, or raising
            continue
    raise ValueError("a record without its metadata cannot be sent")


class _OutcomePickler(pickle.Pickler):
    """A pickler is asked about everything but plain strings, numbers, lists, tuples, sets and dictionaries."""

    def reducer_override(self, value: Any) -> Any:
        taken_apart = _REDUCE.get(type(value))
        return NotImplemented if taken_apart is None else (_build, (taken_apart[0], *taken_apart[1](value)))


class _RecordPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        taken_apart = _REDUCE.get(kind)
        if taken_apart is not None:
            return _build, (taken_apart[0], *taken_apart[1](value))
        if (kind is type or kind is FunctionType) and value in _BUILDERS:
            return NotImplemented
        try:
            return _as_plain(value)
        except Exception:  # noqa: BLE001 - the value's own methods
            return str, (kind.__name__,)


def _dumped(kind: type[pickle.Pickler], value: object) -> bytes:
    buffer = io.BytesIO()
    kind(buffer, _PROTOCOL).dump(value)
    return buffer.getvalue()


def _as_plain(value: Any) -> tuple[Any, ...]:
    """How to build the plain thing that the value is a kind of."""
    if isinstance(value, str):
        return str, (str.__str__(value),)
    if isinstance(value, int):
        return int, (int(value),)
    if isinstance(value, float):
        return float, (float(value),)
    for base in _OF_RECORDS:
        if isinstance(value, base):
            place, values = _REDUCE[base]
            return _build, (place, *values(value))
    if isinstance(value, Mapping):
        return dict, (list(value.items()),)
    if isinstance(value, (list, tuple)):
        return list, (list(value),)
    return str, (type(value).__name__,)


def _through_json(record: RagRecord) -> RagRecord:
    return RagRecord.from_json(record.to_json())


def _without_metadata(record: RagRecord) -> RagRecord:
    def bare(contexts: tuple[RetrievedContext, ...]) -> tuple[RetrievedContext, ...]:
        return tuple(replace(context, metadata={}) for context in contexts)

    return replace(
        record,
        contexts=None if record.contexts is None else bare(record.contexts),
        evidence=bare(record.evidence),
        retrievals=tuple(replace(search, contexts=bare(search.contexts)) for search in record.retrievals),
        rerankings=tuple(
            replace(step, given=bare(step.given), contexts=bare(step.contexts)) for step in record.rerankings
        ),
        metadata={},
    )


def _build(place: int, *values: Any) -> Any:
    return _DATA[place](**dict(zip(_FIELDS[place], values, strict=True)))


_FIELDS = [tuple(field.name for field in fields(kind)) for kind in _DATA]
FORMAT = repr(_FIELDS)
"""Tells versions of ragspan apart whose data differ."""
_REDUCE = {kind: (place, attrgetter(*_FIELDS[place])) for place, kind in enumerate(_DATA)}
"""By type, its place and its fields' values: the arguments of `_build`."""
_BUILDERS = frozenset({_build, str, int, float, dict, list})
"""What is pickled by its name."""
