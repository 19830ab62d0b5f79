"""Which traces a server has, and what they were assessed with already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan.delivery import Unavailable
from ragspan_mlflow.connection import Connection, Reply, TimedOut
from ragspan_mlflow.lanes import in_lanes

TRACES = "/api/3.0/mlflow/traces"

Assessments: TypeAlias = Sequence[Mapping[str, Any]]

_FORBIDDEN, _NOT_FOUND, _NOT_ALLOWED = 403, 404, 405


class LookupFailedError(Exception):
    """The server failed at telling what it has."""


class Traces:
    """Looks traces up, many at once where the server lets us.

    Two kinds of server do not. Older ones lack the request. And those with users answer it with 403 if only one of the
    traces is not there, or not ours to see; they answer 403 for a single trace that is not there, too, unless it is an
    administrator who asks. So 403 says no more than 404 does: the trace is not there yet.
    """

    def __init__(self, connection: Connection, *, lanes: int) -> None:
        self._connection = connection
        self._lanes = lanes
        self._answers_for_many = True

    def assessments_of(self, trace_ids: Iterable[str]) -> dict[str, Assessments]:
        """The assessments of each of these traces that is there.

        Raises:
            Unavailable: the server cannot tell at the moment, or is none of MLflow's.
            LookupFailedError: it fails.
        """
        wanted = list(dict.fromkeys(trace_ids))
        found = self._find_many(wanted) if self._answers_for_many else None
        return self._find_singly(wanted) if found is None else found

    def _find_many(self, wanted: Sequence[str]) -> dict[str, Assessments] | None:
        reply = self._call("POST", f"{TRACES}/batchGetInfos", {"trace_ids": wanted})
        if reply.status in {_NOT_FOUND, _NOT_ALLOWED}:
            self._answers_for_many = False
            return None
        if reply.status == _FORBIDDEN:
            return None
        _check(reply)
        infos = reply.body.get("trace_infos", ())
        return {info["trace_id"]: info.get("assessments", ()) for info in infos}

    def _find_singly(self, wanted: Sequence[str]) -> dict[str, Assessments]:
        found = in_lanes(self._find, wanted, self._lanes)
        return {
            trace_id: assessments
            for trace_id, assessments in zip(wanted, found, strict=True)
            if assessments is not None
        }

    def _find(self, trace_id: str) -> Assessments | None:
        reply = self._call("GET", f"{TRACES}/{trace_id}")
        if reply.names_nothing or reply.status == _FORBIDDEN:
            return None
        if reply.status == _NOT_FOUND:
            raise Unavailable("http_404")  # nothing of MLflow's is there
        _check(reply)
        assessments: Assessments = reply.body["trace"]["trace_info"].get("assessments", ())
        return assessments

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        try:
            return self._connection.call(method, path, body)
        except TimedOut:
            raise Unavailable("timeout") from None


def _check(reply: Reply) -> None:
    if not reply.is_ok:
        raise LookupFailedError(f"http_{reply.status}")
