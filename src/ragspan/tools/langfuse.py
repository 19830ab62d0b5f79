"""Puts scores into Langfuse from version 4 on, by its REST API. Earlier versions take no list of scores.

If Langfuse takes a list in part, it says how many it has refused, not which. The id and the day by which one replaces another are the answer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from ragspan.addresses import basic
from ragspan.arguments import one_of
from ragspan.config import variable
from ragspan.tools import Annotation, BatchRejected, Delivered, ScoreWriter, WriteResult
from ragspan.tools.http import Endpoint
from ragspan.tools.writer import present, stable_id

__all__ = ["LangfuseEmitter"]

_CLOUD = "https://cloud.langfuse.com"


@dataclass(kw_only=True, eq=False, repr=False)
class LangfuseEmitter(ScoreWriter):
    """Writes each score as a numeric score of the answer's observation, with the explanation as its comment.

    Langfuse takes a score before its trace, and also without it: a score whose trace is sampled out on its way is never seen. A
    score has the metric's name, and Langfuse's environment is that in `LANGFUSE_TRACING_ENVIRONMENT`. To score a record again
    replaces what was written. The metadata is `Annotation.metadata`, with `label` and `annotator`.
    """

    base_url: str | None = None
    """Of Langfuse; None takes `LANGFUSE_BASE_URL`, or `LANGFUSE_HOST`, or Langfuse Cloud in the EU."""
    public_key: str | None = None
    """Of the project; None takes `LANGFUSE_PUBLIC_KEY`."""
    secret_key: str | None = None
    """The secret key; by default that in `LANGFUSE_SECRET_KEY`."""
    level: Literal["observation", "trace"] = "observation"
    """Puts scores on the answer's observation, or on its whole trace."""

    name = "langfuse"

    def server(self) -> Endpoint:
        one_of("observation", "trace").check_fields(self, "level")
        address = self.address("base_url", "LANGFUSE_BASE_URL", "LANGFUSE_HOST", default=_CLOUD)
        public = self.setting("public_key", "LANGFUSE_PUBLIC_KEY")
        secret = self.setting("secret_key", "LANGFUSE_SECRET_KEY")
        return Endpoint.at(*address, headers={"authorization": basic(public, secret)}, timeout=self.timeout)

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch by one request."""
        reply = self.client.call("POST", "/api/public/scores", json=[self._score_of(item) for item in batch])
        reply.expect("accepted", self.name)
        if reply.body.get("rejected"):
            raise BatchRejected("refused")  # what is accepted replaces itself when it comes again
        return [Delivered()] * len(batch)

    def _score_of(self, item: Annotation) -> dict[str, Any]:
        """The score as Langfuse takes it."""
        return present(
            {
                "id": stable_id(item.record_id, item.span_id, item.name),
                "traceId": item.trace_id,
                "observationId": item.span_id if self.level == "observation" else None,
                "name": item.name,
                "value": item.value,
                "dataType": "NUMERIC",
                "comment": item.explanation,
                "metadata": present({**item.metadata, "label": item.label, "annotator": item.annotator}),
                "environment": variable("LANGFUSE_TRACING_ENVIRONMENT"),
                "timestamp": datetime.fromtimestamp(item.ended_ns // 1_000_000 / 1000, timezone.utc).isoformat(),
            }
        )
