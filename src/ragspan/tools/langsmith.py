"""Puts scores into LangSmith as feedback, by its REST API.

The id of a feedback follows from run, record and metric; where a server refuses an id that it has, the feedback there is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid5

from ragspan.config import variable
from ragspan.outcomes import ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry import semconv
from ragspan.tools import Annotation, Delivered, DeliveryStatus, ScoreWriter, SpanNotFound, WriteResult
from ragspan.tools.http import Endpoint
from ragspan.tools.writer import present

__all__ = ["LangSmithEmitter"]

_CLOUD = "https://api.smith.langchain.com"
_NOT_FOUND, _CONFLICT = 404, 409
_SOURCES = {semconv.ANNOTATOR_CODE: "api", semconv.ANNOTATOR_LLM: "model"}


@dataclass(kw_only=True, eq=False, repr=False)
class LangSmithEmitter(ScoreWriter):
    """Writes each score as feedback on the answer's run, with the explanation as its comment.

    Runs come to LangSmith in two ways. Where `LANGSMITH_TRACING` is true its own tracer makes them of LangChain's runs, whose ids
    the records have: then no span is needed. Or spans are sent there by OTLP, and LangSmith makes a run of each, whose id follows
    from the span's: then this comes after the emitter that makes the span, `emitters=[OTelEmitter(), LangSmithEmitter()]`.

    Feedback has the metric's name as its key and the label as its value. To score a record again changes what was written. The
    source is `model` where a language model judged, else `api`; its metadata is `Annotation.metadata`.
    """

    api_url: str | None = None
    """Of LangSmith; None takes `LANGSMITH_ENDPOINT`, or LangSmith's cloud in the US."""
    api_key: str | None = None
    """None takes `LANGSMITH_API_KEY`."""
    project: str | None = None
    """Where the runs are, by name; None takes `LANGSMITH_PROJECT`. Where it has no name LangSmith looks for the run in all
    projects, which not every deployment does."""

    name = "langsmith"
    parallel = 4

    def __post_init__(self) -> None:
        self.needs_span = "true" not in {variable(*_names("TRACING")), variable(*_names("TRACING_V2"))}
        self._project = self.project or variable(*_names("PROJECT"))
        self._project_id: str | None = None
        super().__post_init__()

    def server(self) -> Endpoint:
        key = self.setting("api_key", *_names("API_KEY"))
        headers = {"x-api-key": key, "x-tenant-id": variable(*_names("WORKSPACE_ID"))}
        address = self.address("api_url", *_names("ENDPOINT"), default=_CLOUD)
        return Endpoint.at(*address, headers=headers, timeout=self.timeout)

    def emit(self, scored: ScoredRecord) -> DeliveryStatus:
        """Take an answer's outcomes; the tracer's runs need no span."""
        run = self._traced_run(scored)
        if run is not None:
            scored = replace(scored, span=SpanAnchor(trace_id=run.int, span_id=run.int >> 64))
        return super().emit(scored)

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """An annotation of the answer's run for each score."""
        # LangSmith makes a span's id a run's by zeros before it.
        run = self._traced_run(scored) or UUID(int=span.span_id)
        return [replace(item, span_id=str(run)) for item in super().items_of(scored, span)]

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Create the feedback, or change what is there already."""
        (item,) = batch
        if self._project is not None and self._project_id is None:
            reply = self.client.call("GET", "/sessions", query={"name": self._project, "limit": "1"})
            found = reply.expect("items", self.name).body["items"]
            projects = {one["name"]: one["id"] for one in found}
            self._project_id = projects.get(self._project)
            if self._project_id is None:  # a project comes into being with its first trace
                return [SpanNotFound()]
        feedback = present(
            {
                "id": str(uuid5(UUID(item.span_id), f"{item.record_id}\0{item.name}")),
                "run_id": item.span_id,
                "session_id": self._project_id,
                "key": item.name,
                "score": item.value,
                "value": item.label,
                "comment": item.explanation,
                "feedback_source": {"type": _SOURCES[item.annotator], "metadata": item.metadata},
            }
        )
        reply = self.client.call("POST", "/feedback", json=feedback)
        if reply.status == _CONFLICT:
            changes: dict[str, Any] = {name: feedback.get(name) for name in ("score", "value", "comment")}
            reply = self.client.call("PATCH", f"/feedback/{feedback['id']}", json=changes)
        if reply.status == _NOT_FOUND and "detail" in reply.body:
            return [SpanNotFound()]
        reply.expect("id", self.name)
        return [Delivered()]

    def _traced_run(self, scored: ScoredRecord) -> UUID | None:
        run_id = None if self.needs_span else scored.record.run_id
        try:
            return None if run_id is None else UUID(run_id)
        except ValueError:  # of a record that came as JSON
            return None


def _names(setting: str) -> tuple[str, str]:
    """The present and the former name of a variable of LangSmith's."""
    return f"LANGSMITH_{setting}", f"LANGCHAIN_{setting}"
