"""Writes feedback to LangSmith, by its REST API.

The id of a feedback follows from run, record and metric. LangSmith's own client sends one again with the same id when a reply is
lost; where a server refuses an id that it has, the feedback there is changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from ragspan.delivery import Annotation, Delivered, Failed, Rejected, SpanNotFound, Unavailable, WriteResult
from ragspan.delivery.http import HttpClient, Reply, TimedOut, in_parallel
from ragspan.delivery.writer import present
from ragspan.telemetry import semconv

PARALLEL = 4
"""Requests at the same time."""

_BAD_REQUEST, _NOT_FOUND, _CONFLICT, _TOO_LARGE, _UNPROCESSABLE, _SERVER_ERROR = 400, 404, 409, 413, 422, 500
_SOURCES = {semconv.ANNOTATOR_CODE: "api", semconv.ANNOTATOR_LLM: "model"}
_CHANGED = ("score", "value", "comment")


class LangSmithServer:
    """A connection to LangSmith.

    Args:
        client: of the server; closed with this.
        project: where the runs are, by name; None leaves it to the server to look for them.
    """

    def __init__(self, client: HttpClient, *, project: str | None) -> None:
        self._client = client
        self._project = project
        self._project_id: str | None = None

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch, a request for each feedback; what became of each, in order."""
        if self._project is not None and self._project_id is None:
            self._project_id = self._id_of(self._project)
            if self._project_id is None:  # a project comes into being with its first trace
                return [SpanNotFound()] * len(batch)
        return in_parallel(partial(self._write, project_id=self._project_id), batch, PARALLEL)

    def close(self) -> None:
        self._client.close()

    def _id_of(self, project: str) -> str | None:
        try:
            reply = self._client.call("GET", "/sessions", query={"name": project, "limit": "1"})
        except TimedOut:
            raise Unavailable("timeout") from None
        if not reply.is_ok:
            raise Unavailable(f"http_{reply.status}")
        return next((found["id"] for found in reply.body.get("items", ()) if found["name"] == project), None)

    def _write(self, item: Annotation, *, project_id: str | None) -> WriteResult:
        feedback = feedback_of(item, project_id=project_id)
        try:
            reply = self._client.call("POST", "/feedback", json=feedback)
            if reply.status == _CONFLICT:
                changes = {name: feedback.get(name) for name in _CHANGED}
                reply = self._client.call("PATCH", f"/feedback/{feedback['id']}", json=changes)
        except TimedOut:
            return Failed()
        return _result(reply)


def feedback_of(item: Annotation, *, project_id: str | None) -> dict[str, Any]:
    """The feedback as LangSmith takes it; the annotation's span is the run."""
    return present(
        {
            "id": str(uuid.uuid5(uuid.UUID(item.span_id), f"{item.record_id}\0{item.name}")),
            "run_id": item.span_id,
            "session_id": project_id,
            "key": item.name,
            "score": item.value,
            "value": item.error_type or item.label,
            "comment": item.explanation,
            "error": None if item.error_type is None else True,
            "feedback_source": {"type": _SOURCES[item.annotator], "metadata": item.metadata},
        }
    )


def _result(reply: Reply) -> WriteResult:
    if reply.is_ok:
        return Delivered()
    if reply.status == _NOT_FOUND and "detail" in reply.body:
        return SpanNotFound()
    if reply.status in {_BAD_REQUEST, _TOO_LARGE, _UNPROCESSABLE}:
        return Rejected(f"http_{reply.status}")
    if reply.status == _SERVER_ERROR:
        return Failed()
    raise reply.failure()
