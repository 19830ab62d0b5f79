"""Puts scores into Phoenix as annotations, by its REST API.

With `sync=true` Phoenix writes a batch as a whole or not at all, and names the spans that are not there. Without it, it keeps what it
was sent in memory until the span is there, for ten minutes at most, and a restart loses it: that is for the last try of a program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from opentelemetry.sdk.trace.export import SpanExporter

from ragspan.config import variable
from ragspan.telemetry.values import clean_name
from ragspan.tools import Annotation, Delivered, ScoreWriter, SpanNotFound, WriteResult
from ragspan.tools.http import Endpoint, Reply, session_for
from ragspan.tools.spans import AFTER_SCORES, RetryingSpanExporter
from ragspan.tools.writer import present

__all__ = ["PhoenixEmitter"]

_ENDPOINTS = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_BASE_URL")
"""In this order. That of the exporter of spans is a guess: Phoenix takes them where its API is."""
_TRACES_PATH = re.compile(r"/+v1/traces/?$")
_GRPC_PORT = re.compile(r":4317(/|$)")  # of the collector; there is no REST API on it
_HERE = "http://127.0.0.1:6006"
_SPAN_ID = re.compile(r"\b[0-9a-f]{16}\b")
_NOT_FOUND = 404


@dataclass(kw_only=True, eq=False, repr=False)
class PhoenixEmitter(ScoreWriter):
    """Writes each score as an annotation of the answer's span.

    An annotation has the metric's name, and its `identifier` names the record: to score a record again replaces what was
    written. What the embedded judge and HHEM say is of kind `CODE`, what a language model says is `LLM`. The metadata is
    `Annotation.metadata`.
    """

    base_url: str | None = None
    """Of Phoenix, such as `http://127.0.0.1:6006`. None asks the environment as Phoenix's own client does:
    `PHOENIX_ENDPOINT`, `PHOENIX_COLLECTOR_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `PHOENIX_BASE_URL`; else it is port 6006 of this
    machine."""
    api_key: str | None = None
    """For a Phoenix that wants one. None takes the headers in `PHOENIX_CLIENT_HEADERS`, and `PHOENIX_API_KEY`."""

    name = "phoenix"

    def server(self) -> Endpoint:
        return phoenix_server(self.base_url, api_key=self.api_key, timeout=self.timeout)

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same Phoenix, and keeps them while it is away."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        endpoint = self.client.endpoint
        url, headers = f"{endpoint.url}/v1/traces", dict(endpoint.headers)
        inner = OTLPSpanExporter(url, headers=headers, timeout=endpoint.timeout, session=session_for(endpoint))
        return RetryingSpanExporter(inner, exit_timeout=AFTER_SCORES)

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch; Phoenix has written all of it, or nothing and names the spans that it does not have."""
        reply = self._post(batch, "true")
        missing = set(_SPAN_ID.findall(reply.text)) if reply.status == _NOT_FOUND else set()
        if not any(item.span_id in missing for item in batch):
            reply.expect("data", self.name)
        there = [item for item in batch if item.span_id not in missing]
        if missing and there:  # what is missing came last, so a second try of the others cannot fail for it
            written = iter(self.write(there))
            return [SpanNotFound() if item.span_id in missing else next(written) for item in batch]
        return [SpanNotFound() if missing else Delivered()] * len(batch)

    def write_last(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Leave the batch with Phoenix, which waits for spans that it does not have yet."""
        self._post(batch, "false").expect("data", self.name)
        return [Delivered()] * len(batch)

    def _post(self, batch: Sequence[Annotation], sync: str) -> Reply:
        """A row replaces one with the same span, name and identifier: two answers under one span keep their scores apart."""
        rows = [
            {
                "span_id": item.span_id,
                "name": item.name,
                "annotator_kind": item.annotator,
                "identifier": clean_name(f"ragspan:{item.record_id}"),
                "result": present({"score": item.value, "label": item.label, "explanation": item.explanation}),
                "metadata": item.metadata,
            }
            for item in batch
        ]
        return self.client.call("POST", "/v1/span_annotations", query={"sync": sync}, json={"data": rows})


def phoenix_server(base_url: str | None = None, *, api_key: str | None = None, timeout: float = 30.0) -> Endpoint:
    """The server at this address, or where the environment has it; see `PhoenixEmitter`.

    Raises:
        ConfigurationError: it is not an address.
    """
    found = ((name, variable(name) or "") for name in _ENDPOINTS)
    name, url = next(((name, url) for name, url in found if url and not _GRPC_PORT.search(url)), ("base_url", _HERE))
    if base_url is not None:
        name, url = "base_url or phoenix= of configure", base_url
    chosen: dict[str, str] = {}
    if api_key is None:
        pairs = (part.partition("=") for part in (variable("PHOENIX_CLIENT_HEADERS") or "").split(",") if "=" in part)
        chosen = {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs}
        api_key = None if "authorization" in chosen else variable("PHOENIX_API_KEY")
    chosen |= {"authorization": f"Bearer {api_key.strip()}"} if api_key else {}
    return Endpoint.at(name, _TRACES_PATH.sub("", url), headers=chosen, timeout=timeout)
