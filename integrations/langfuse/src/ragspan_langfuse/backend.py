"""Writes scores to a Langfuse server, by its REST API.

From version 4 on Langfuse takes a list of scores; of a list that it takes in part it says how many it has refused, not which. Earlier
versions take scores as events of their ingestion, and answer each. The first batch shows which of the two a server is.

Langfuse takes a score whether or not its trace is there. One with the same id, name and day replaces what was there: the id and the
time follow from the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias

from ragspan.delivery import Annotation, BatchRejected, Delivered, Failed, Rejected, WriteResult
from ragspan.delivery.http import HttpClient, Reply
from ragspan.delivery.writer import present, stable_id

Scores: TypeAlias = Sequence[Mapping[str, Any]]

SCORES = "/api/public/scores"
INGESTION = "/api/public/ingestion"

_BAD_REQUEST, _SERVER_ERROR = 400, 500
_ABSENT = {404, 405, 410}
_MAY_PASS = {401, 408, 429}
"""Statuses of an event that may do better later, besides a server's errors."""


class LangfuseServer:
    """A connection to Langfuse.

    Args:
        client: of the server; closed with this.
        level: what scores are put on, `observation` or `trace`.
        environment: the scores' environment in Langfuse; None leaves it to the server.
    """

    def __init__(self, client: HttpClient, *, level: str, environment: str | None) -> None:
        self._client = client
        self._level = level
        self._environment = environment
        self._takes_lists = True

    def write(self, batch: Sequence[Annotation]) -> list[WriteResult]:
        """Write the batch by one request, or by two if the first shows that the server is of an earlier version."""
        scores = [score_of(item, level=self._level, environment=self._environment) for item in batch]
        refused = None
        if self._takes_lists:
            refused = self._post(SCORES, scores)
            if refused.status != _BAD_REQUEST:
                return _results_of_list(refused, len(batch))
        events = [_event_of(score) for score in scores]
        reply = self._post(INGESTION, {"batch": events})
        self._takes_lists = reply.status in _ABSENT
        if not reply.is_ok:
            raise (reply if refused is None or not self._takes_lists else refused).failure()
        return _results_of_events(reply, [event["id"] for event in events])

    def close(self) -> None:
        self._client.close()

    def _post(self, path: str, content: object) -> Reply:
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        return self._client.call("POST", path, data=body)


def score_of(item: Annotation, *, level: str, environment: str | None) -> dict[str, Any]:
    """The score as Langfuse takes it."""
    is_failure = item.error_type is not None
    return present(
        {
            "id": stable_id(item.record_id, item.span_id, item.name),
            "traceId": item.trace_id,
            "observationId": item.span_id if level == "observation" else None,
            "name": item.name,
            "value": "error" if is_failure else item.value,
            "dataType": "CATEGORICAL" if is_failure else "NUMERIC",
            "comment": item.error_type or item.explanation,
            "metadata": present({**item.metadata, "label": item.label, "annotator": item.annotator}),
            "environment": environment,
            "timestamp": datetime.fromtimestamp(item.ended_ns // 1_000_000 / 1000, timezone.utc).isoformat(),
        }
    )


def _event_of(score: Mapping[str, Any]) -> dict[str, Any]:
    """The score as an event. Langfuse passes over an event with an id that it has seen, so another value is another event."""
    body = {name: value for name, value in score.items() if name != "timestamp"}
    event_id = stable_id(score["id"], json.dumps(body))
    return {"id": event_id, "type": "score-create", "timestamp": score["timestamp"], "body": body}


def _results_of_list(reply: Reply, number: int) -> list[WriteResult]:
    if not reply.is_ok:
        raise reply.failure()
    if reply.body.get("rejected"):
        raise BatchRejected("refused")  # what is accepted replaces itself when it comes again
    return [Delivered()] * number


def _results_of_events(reply: Reply, ids: Sequence[str]) -> list[WriteResult]:
    taken = {entry["id"] for entry in reply.body.get("successes", ())}
    statuses = {entry["id"]: entry["status"] for entry in reply.body.get("errors", ())}
    return [Delivered() if event_id in taken else _refusal(statuses.get(event_id)) for event_id in ids]


def _refusal(status: int | None) -> WriteResult:
    may_pass = status is None or status >= _SERVER_ERROR or status in _MAY_PASS
    return Failed() if may_pass else Rejected(f"http_{status}")
