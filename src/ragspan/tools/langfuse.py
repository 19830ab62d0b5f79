"""Puts scores into Langfuse, by its REST API.

From version 4 on Langfuse takes a list of scores; if it takes a list in part, it says how many it has refused, not which. Earlier
versions take scores as events of their ingestion, and answer each. The first batch shows which of the two a server is.

Langfuse takes a score whether or not its trace is there. One with the same id, name and day replaces what was there: the id and the
time follow from the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from ragspan.addresses import basic
from ragspan.arguments import choice
from ragspan.config import variable
from ragspan.tools import (
    Annotation,
    BatchRejected,
    Delivered,
    Failed,
    Rejected,
    ScoreWriter,
    Unavailable,
    WriteResult,
)
from ragspan.tools.http import Endpoint, Reply
from ragspan.tools.writer import present, stable_id

__all__ = ["LangfuseEmitter"]

_CLOUD = "https://cloud.langfuse.com"
_LEVEL = choice("observation", "trace")
_SCORES, _INGESTION = "/api/public/scores", "/api/public/ingestion"
_ACCEPTED, _BAD_REQUEST, _SERVER_ERROR = 202, 400, 500
_ABSENT = {404, 405, 410}
_MAY_PASS = {401, 408, 429}
"""Statuses of an event that may succeed later, besides a server's errors."""


@dataclass(kw_only=True, eq=False, repr=False)
class LangfuseEmitter(ScoreWriter):
    """Writes each score as a numeric score of the answer's observation, with the explanation as its comment.

    It comes after the emitter that makes or finds the answer's span, whose spans have to go to the same project:
    `emitters=[OTelEmitter(), LangfuseEmitter()]`. Langfuse takes a score before its trace, and also without it: a score whose
    trace is sampled out on its way is never seen.

    A score has the metric's name. To score a record again replaces what was written. A metric that does not apply has no
    score; one that failed has, with `failures=True`, a categorical score `error`. The metadata is `Annotation.metadata`, with
    `label` and `annotator`.

    Raises:
        ConfigurationError: a key is missing, or an argument or the environment has a value that is not allowed.
    """

    base_url: str | None = None
    """Of Langfuse; None takes `LANGFUSE_BASE_URL`, or `LANGFUSE_HOST`, or Langfuse Cloud in the EU."""
    public_key: str | None = None
    """Of the project; None takes `LANGFUSE_PUBLIC_KEY`."""
    secret_key: str | None = None
    """The secret key; by default that in `LANGFUSE_SECRET_KEY`."""
    level: Literal["observation", "trace"] = "observation"
    """Puts scores on the answer's observation, or on its whole trace."""
    environment: str | None = None
    """Langfuse's environment of the scores; None takes `LANGFUSE_TRACING_ENVIRONMENT`, or leaves it to the server."""

    name = "langfuse"

    def __post_init__(self) -> None:
        _LEVEL.check_fields(self, "level")
        self._environment = self.environment or variable("LANGFUSE_TRACING_ENVIRONMENT")
        self._takes_lists = True
        super().__post_init__()

    def server(self) -> Endpoint:
        address = self.address("base_url", "LANGFUSE_BASE_URL", "LANGFUSE_HOST", default=_CLOUD)
        public = self.setting("public_key", "LANGFUSE_PUBLIC_KEY")
        secret = self.setting("secret_key", "LANGFUSE_SECRET_KEY")
        return Endpoint.at(*address, headers={"authorization": basic(public, secret)}, timeout=self.timeout)

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch by one request, or by two if the first shows that the server is of an earlier version."""
        scores = [self._score_of(item) for item in batch]
        refused = None
        if self._takes_lists:
            refused = self.client.call("POST", _SCORES, json=scores)
            if refused.status != _BAD_REQUEST:
                return _results_of_list(refused, len(batch))
        events = [_event_of(score) for score in scores]
        reply = self.client.call("POST", _INGESTION, json={"batch": events})
        self._takes_lists = reply.status in _ABSENT
        if not reply.is_ok:
            raise (reply if refused is None or not self._takes_lists else refused).failure()
        return _results_of_events(reply, [event["id"] for event in events])

    def _score_of(self, item: Annotation) -> dict[str, Any]:
        """The score as Langfuse takes it."""
        is_failure = item.error_type is not None
        return present(
            {
                "id": stable_id(item.record_id, item.span_id, item.name),
                "traceId": item.trace_id,
                "observationId": item.span_id if self.level == "observation" else None,
                "name": item.name,
                "value": "error" if is_failure else item.value,
                "dataType": "CATEGORICAL" if is_failure else "NUMERIC",
                "comment": item.error_type or item.explanation,
                "metadata": present({**item.metadata, "label": item.label, "annotator": item.annotator}),
                "environment": self._environment,
                "timestamp": datetime.fromtimestamp(item.ended_ns // 1_000_000 / 1000, timezone.utc).isoformat(),
            }
        )


def _event_of(score: Mapping[str, Any]) -> dict[str, Any]:
    """The score as an event. Langfuse ignores an event with an id that it has seen, so another value is another event."""
    body = {name: value for name, value in score.items() if name != "timestamp"}
    event_id = stable_id(score["id"], json.dumps(body))
    return {"id": event_id, "type": "score-create", "timestamp": score["timestamp"], "body": body}


def _results_of_list(reply: Reply, number: int) -> list[WriteResult]:
    if not reply.is_ok:
        raise reply.failure()
    if reply.status != _ACCEPTED and "accepted" not in reply.body:
        raise Unavailable("not_langfuse")  # another server's greeting
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
