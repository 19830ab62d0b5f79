"""Writes evaluations to Datadog LLM Observability, by the interface that Datadog's own library uses.

Datadog accepts a request as a whole, whether or not it has the spans, and joins them later; nobody is told of an evaluation whose
span never comes. An evaluation has no id: one that is sent twice is there twice, so both say the same, their time included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ragspan.delivery import Annotation, Delivered, WriteResult
from ragspan.delivery.http import HttpClient
from ragspan.delivery.writer import present

PATH = "/api/intake/llm-obs/v2/eval-metric"

_NOT_IN_LABELS = re.compile(r"[^0-9A-Za-z_]")
_MAX_LABEL = 200


class DatadogIntake:
    """A connection to Datadog.

    Args:
        client: of Datadog's API; closed with this.
        ml_app: the application that the spans belong to in LLM Observability.
    """

    def __init__(self, client: HttpClient, *, ml_app: str) -> None:
        self._client = client
        self._ml_app = ml_app

    def write(self, batch: Sequence[Annotation]) -> list[WriteResult]:
        """Write the batch by one request; one that is too large, or has an evaluation that Datadog refuses, is split."""
        metrics = [evaluation_of(item, ml_app=self._ml_app) for item in batch]
        content = {"data": {"type": "evaluation_metric", "attributes": {"metrics": metrics}}}
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        reply = self._client.call("POST", PATH, data=body)
        if not reply.is_ok:
            raise reply.failure()
        return [Delivered()] * len(batch)

    def close(self) -> None:
        self._client.close()


def evaluation_of(item: Annotation, *, ml_app: str) -> dict[str, Any]:
    """The evaluation as Datadog takes it. Of spans that came by OpenTelemetry it wants decimal ids, and to be told so."""
    tags = {"source": "otel", "annotator": item.annotator, "judge": item.judge}
    span = {"span_id": str(int(item.span_id, 16)), "trace_id": str(int(item.trace_id, 16))}
    return present(
        {
            "event_kind": "evaluation",
            "eval_scope": "span",
            "join_on": {"span": span},
            "ml_app": ml_app,
            "timestamp_ms": item.ended_ns // 1_000_000,
            **_value(item),
            "assessment": item.label if item.label in {"pass", "fail"} else None,
            "reasoning": item.explanation,
            "tags": [f"{key}:{value}" for key, value in present(tags).items()],
            "metadata": present({**item.metadata, "label": item.label}),
        }
    )


def _value(item: Annotation) -> dict[str, Any]:
    """A number, or the type of an error under a label of its own: a label has values of one type only."""
    if item.error_type is None:
        return {"label": label_of(item.name), "metric_type": "score", "score_value": item.value}
    return {
        "label": label_of(f"{item.name[: _MAX_LABEL - 8]}_error"),
        "metric_type": "categorical",
        "categorical_value": item.error_type,
    }


def label_of(metric: str) -> str:
    """The metric's name as a label: at most 200 ASCII letters, digits and underscores, a letter first."""
    label = _NOT_IN_LABELS.sub("_", metric)
    return (label if label[:1].isalpha() else f"m_{label}")[:_MAX_LABEL]
