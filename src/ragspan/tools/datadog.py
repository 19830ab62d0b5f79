"""Puts scores into Datadog LLM Observability, by the interface that Datadog's own library uses.

It accepts a request as a whole. An evaluation has no id: one that is sent twice is there twice, so both say the same, with their time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.config import variable
from ragspan.tools import Annotation, Delivered, ScoreWriter, WriteResult
from ragspan.tools.http import Endpoint
from ragspan.tools.writer import present

__all__ = ["DatadogEmitter"]


@dataclass(kw_only=True, eq=False, repr=False)
class DatadogEmitter(ScoreWriter):
    """Writes each score as an evaluation of the answer's span in LLM Observability, with the explanation as its reasoning.

    The spans have to reach LLM Observability by OTLP. Datadog accepts an evaluation before its span, and joins them later; one
    whose span is sampled out on its way is never seen. An evaluation has the metric's name as its label, of ASCII letters, digits and underscores, and `pass` or `fail` as its
    assessment. To score a record again adds an evaluation: Datadog has nothing that replaces one.
    """

    site: str | None = None
    """Of Datadog, such as `datadoghq.eu`; None takes `DD_SITE`, or `datadoghq.com`."""
    api_key: str | None = None
    """None takes `DD_API_KEY`."""
    ml_app: str | None = None
    """The application in LLM Observability; None takes `DD_LLMOBS_ML_APP`, `DD_SERVICE` or `OTEL_SERVICE_NAME`."""
    base_url: str | None = None
    """Of an API in place of the site's, such as a proxy; None takes `DD_LLMOBS_OVERRIDE_ORIGIN`."""

    name = "datadog"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Datadog names the application of OpenTelemetry's spans by their service.
        self._app = self.setting("ml_app", "DD_LLMOBS_ML_APP", "DD_SERVICE", "OTEL_SERVICE_NAME")

    def server(self) -> Endpoint:
        of_site = f"https://api.{self.site or variable('DD_SITE') or 'datadoghq.com'}"
        overrides = [] if self.site else ["DD_LLMOBS_OVERRIDE_ORIGIN"]
        name, url = self.address("base_url", *overrides, default=of_site)
        key = self.setting("api_key", "DD_API_KEY")
        return Endpoint.at("site" if url == of_site else name, url, headers={"dd-api-key": key}, timeout=self.timeout)

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch by one request; one that is too large, or has an evaluation that Datadog refuses, is split."""
        metrics = [self._evaluation_of(item) for item in batch]
        content = {"data": {"type": "evaluation_metric", "attributes": {"metrics": metrics}}}
        self.client.call("POST", "/api/intake/llm-obs/v2/eval-metric", json=content).expect("data", self.name)
        return [Delivered()] * len(batch)

    def _evaluation_of(self, item: Annotation) -> dict[str, Any]:
        """The evaluation as Datadog takes it. Spans of OpenTelemetry need decimal ids and the tag `source:otel`.

        A label has at most 200 ASCII letters, digits and underscores, a letter first.
        """
        label = re.sub("[^0-9A-Za-z_]", "_", item.name)
        tags = {"source": "otel", "annotator": item.annotator, "judge": item.judge}
        span = {"span_id": str(int(item.span_id, 16)), "trace_id": str(int(item.trace_id, 16))}
        return present(
            {
                "event_kind": "evaluation",
                "eval_scope": "span",
                "join_on": {"span": span},
                "ml_app": self._app,
                "timestamp_ms": item.ended_ns // 1_000_000,
                "label": (label if label[:1].isalpha() else f"m_{label}")[:200],
                "metric_type": "score",
                "score_value": item.value,
                "assessment": item.label,
                "reasoning": item.explanation,
                "tags": [f"{key}:{value}" for key, value in present(tags).items()],
                "metadata": present({**item.metadata, "label": item.label}),
            }
        )
