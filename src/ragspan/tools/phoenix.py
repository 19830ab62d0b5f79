"""Puts scores into Phoenix as annotations, by its REST API.

With `sync=true` Phoenix writes a batch as a whole or not at all, and names the spans that are not there. Without it, Phoenix answers
200 and keeps what it was sent in memory, as it keeps spans, until the span is there, for ten minutes at most: that is for the last
try at the end of a program only, since a restart of Phoenix loses both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from ragspan.arguments import FLAG, TEXT
from ragspan.config import CaptureContent, variable
from ragspan.judges.judge_protocols import ContextRating, ContextVerdict
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry.values import clean_name
from ragspan.tools import Annotation, Delivered, Rejected, ScoreWriter, SpanNotFound, Unavailable, WriteResult
from ragspan.tools.http import Endpoint, Reply
from ragspan.tools.spans import AFTER_SCORES, RetryingSpanExporter
from ragspan.tools.writer import present

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["PhoenixEmitter"]

_ENDPOINTS = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_BASE_URL")
"""In this order. That of the exporter of spans is a guess: Phoenix takes them where its API is."""
_TRACES_PATH = re.compile(r"/+v1/traces/?$")
_GRPC_PORT = re.compile(r":4317(/|$)")  # of the collector; there is no REST API on it

_SPAN_ID = re.compile(r"\b[0-9a-f]{16}\b")
_OUT_OF_BOUNDS = re.compile(r"out of bounds for span ([0-9a-f]{16}) \(max: (-?\d+)\)")
_NOT_FOUND, _UNPROCESSABLE = 404, 422

_Numbered: TypeAlias = Mapping[int, Annotation]


@dataclass(kw_only=True, eq=False, repr=False)
class PhoenixEmitter(ScoreWriter):
    """Writes each score as an annotation of the answer's span, and verdicts on contexts as annotations of documents.

    It comes after the emitter that makes or finds the answer's span, whose spans have to go to the same Phoenix:
    `emitters=[OTelEmitter(), PhoenixEmitter()]`.

    An annotation has the metric's name, and its `identifier` names the record: to score a record again replaces what was
    written. A metric that does not apply has no annotation. What the embedded judge and HHEM say is of kind `CODE`, what
    a language model says is `LLM`. The metadata is `Annotation.metadata`.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    base_url: str | None = None
    """Of Phoenix, such as `http://127.0.0.1:6006`. None asks the environment as Phoenix's own client does:
    `PHOENIX_ENDPOINT`, `PHOENIX_COLLECTOR_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `PHOENIX_BASE_URL`, `PHOENIX_HOST` with
    `PHOENIX_PORT`; else it is port 6006 of this machine. Files `.env.phoenix` are not read."""
    api_key: str | None = None
    """For a Phoenix that wants one. Where neither it nor `headers` are given: `PHOENIX_API_KEY`."""
    headers: Mapping[str, str] | None = None
    """Sent with each request, like those in `PHOENIX_CLIENT_HEADERS`."""
    identifier: str = "ragspan"
    """What the annotations' identifiers begin with. Two engines that score the same answers each for itself need different
    ones."""
    documents: bool = True
    """Write verdicts on single contexts, which `context_utilization` and the metrics of chunks have, to the documents on the
    spans of the searches that found them."""

    name = "phoenix"

    def __post_init__(self) -> None:
        FLAG.check_fields(self, "documents")  # `"false"` is true to Python
        TEXT.check_fields(self, "identifier")
        super().__post_init__()

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent | None) -> PhoenixEmitter:
        """The emitter for the Phoenix at this address, for `ragspan.configure(phoenix=address)`."""
        return cls(base_url=address, capture_content=capture_content)

    def server(self) -> Endpoint:
        return phoenix_server(self.base_url, api_key=self.api_key, headers=self.headers, timeout=self.timeout)

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same Phoenix, and keeps them while it is away."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        from ragspan.tools.sessions import ToolSession

        endpoint = self.client.endpoint
        url, headers = f"{endpoint.url}/v1/traces", dict(endpoint.headers)
        inner = OTLPSpanExporter(url, headers=headers, timeout=endpoint.timeout, session=ToolSession(endpoint))
        return RetryingSpanExporter(inner, exit_timeout=AFTER_SCORES)

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """An annotation of the answer's span for each score, and of the documents of its searches for each verdict on one."""
        items = [*super().items_of(scored, span)]
        if self.documents and any(scored.retrieval_spans):
            for metric, outcome in scored.outcomes.items():
                if isinstance(outcome, Score):
                    items.extend(self._of_documents(scored, metric, outcome))
        return items

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch, annotations of spans and of documents by requests of their own."""
        return self._write_all(batch, "true")

    def write_last(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Leave the batch with Phoenix, which waits for spans that it does not have yet."""
        return self._write_all(batch, "false")

    def _write_all(self, batch: Sequence[Annotation], sync: str) -> Sequence[WriteResult]:
        results: dict[int, WriteResult] = {}
        for is_of_document, path in ((False, "/v1/span_annotations"), (True, "/v1/document_annotations")):
            left = {n: item for n, item in enumerate(batch) if (item.position is not None) == is_of_document}
            while left:
                found = self._write(path, left, sync)
                results |= found
                left = {number: item for number, item in left.items() if number not in found}
        return [results[number] for number in range(len(batch))]

    def _write(self, path: str, items: _Numbered, sync: str) -> Mapping[int, WriteResult]:
        """What became of at least one of the items; Phoenix has written all of them or none."""
        rows = [self.row_of(item) for item in items.values()]
        reply = self.client.call("POST", path, query={"sync": sync}, json={"data": rows})
        if reply.is_ok:
            written = reply.body.get("data")
            if not isinstance(written, list) or (len(written) != len(items) and sync == "true"):
                raise Unavailable("not_phoenix")  # another server's greeting
            return dict.fromkeys(items, Delivered())
        if found := _missing(reply, items) or _outside(reply, items):
            return found
        raise reply.failure()

    def row_of(self, item: Annotation) -> dict[str, Any]:
        """The annotation as Phoenix takes it. It replaces a row with the same span, name, identifier and position.

        The identifier is the record's: two answers under one span keep their scores apart. Documents have none, so one name
        stands once on a document.
        """
        result = {"score": item.value, "label": item.label, "explanation": item.explanation}
        row: dict[str, Any] = {
            "span_id": item.span_id,
            "name": item.name,
            "annotator_kind": item.annotator,
            "identifier": clean_name(f"{self.identifier}:{item.record_id}") if item.position is None else "",
            "result": {"label": "error"} if item.error_type is not None else present(result),
            "metadata": item.metadata,
        }
        return row if item.position is None else row | {"document_position": item.position}

    def _of_documents(self, scored: ScoredRecord, metric: str, score: Score) -> Iterator[Annotation]:
        verdicts = [one for one in score.evidence if isinstance(one, ContextVerdict | ContextRating | JudgedContext)]
        places = places_of(scored.record) if verdicts else []
        metadata = present(
            {"record_id": clean_name(scored.record.record_id), "judge": score.judge and clean_name(score.judge)}
        )
        for verdict in verdicts:
            if isinstance(verdict, ContextVerdict):
                value, label = float(verdict.useful), "useful" if verdict.useful else "not useful"
            else:
                value, label = verdict.value, None
            explanation = self.content.explanation_of_verdict(verdict.explanation)
            facts = {"value": value, "label": label, "explanation": explanation, "metadata": metadata}
            for search, position in places[verdict.index] if 0 <= verdict.index < len(places) else ():
                span = scored.retrieval_spans[search]
                if span is not None and span.sampled:
                    yield Annotation.of(scored, span, metric, score, position=position, **facts)


def _missing(reply: Reply, items: _Numbered) -> dict[int, WriteResult]:
    """The items whose spans Phoenix says it does not have."""
    spans = set(_SPAN_ID.findall(reply.text)) if reply.status == _NOT_FOUND else set()
    return {number: SpanNotFound() for number, item in items.items() if item.span_id in spans}


def _outside(reply: Reply, items: _Numbered) -> dict[int, WriteResult]:
    """The items for documents that the span does not have: its attributes name none, or fewer."""
    named_span = _OUT_OF_BOUNDS.search(reply.text) if reply.status == _UNPROCESSABLE else None
    if named_span is None:
        return {}
    span_id, last = named_span[1], int(named_span[2])
    return {
        number: Rejected("no_such_document")
        for number, item in items.items()
        if item.span_id == span_id and item.position is not None and item.position > last
    }


def places_of(record: RagRecord) -> list[list[tuple[int, int]]]:
    """For each context where the record's searches found it: the number of the search, and the place in its result."""
    return [
        [
            (number, place)
            for number, retrieval in enumerate(record.retrievals)
            if (place := _place_in(retrieval, context)) is not None
        ]
        for context in record.contexts or ()
    ]


def _place_in(retrieval: Retrieval, context: RetrievedContext) -> int | None:
    """Where the search has the context; by its id where its text was changed on the way, by its text where it has no id."""
    exact, by_id, by_text = [], [], []
    for place, other in enumerate(retrieval.contexts):
        has_id, has_text = other.id == context.id, other.text == context.text
        exact += [place] * (has_id and has_text)
        by_id += [place] * (has_id and context.id is not None)
        by_text += [place] * has_text
    return next(iter(exact + by_id + by_text), None)


def phoenix_server(
    base_url: str | None = None,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> Endpoint:
    """The server at this address, or where the environment has it; see `PhoenixEmitter`.

    Raises:
        ConfigurationError: it is not an address.
    """
    name, url = _address() if base_url is None else ("base_url", base_url)
    return Endpoint.at(name, url, headers=_headers(api_key, headers), timeout=timeout)


def _address() -> tuple[str, str]:
    """The variable that has the address, and the address."""
    for name in _ENDPOINTS:
        endpoint = variable(name)
        is_for_grpc = name == "OTEL_EXPORTER_OTLP_ENDPOINT" and _GRPC_PORT.search(endpoint or "")
        if endpoint is not None and not is_for_grpc:
            return name, _TRACES_PATH.sub("", endpoint)
    # `PHOENIX_HOST` is what the server binds to, so it may be a bare name, or stand for all addresses.
    host = variable("PHOENIX_HOST") or "127.0.0.1"
    if "://" in host:
        return "PHOENIX_HOST", host
    reachable = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - what the server binds to, not we
    name = f"[{reachable}]" if ":" in reachable else reachable
    return "PHOENIX_HOST", f"http://{name}:{variable('PHOENIX_PORT') or '6006'}"


def _headers(api_key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers given, else those of `PHOENIX_CLIENT_HEADERS`; an API key goes before an authorization among them."""
    if headers is None and api_key is None:
        chosen = _headers_in(variable("PHOENIX_CLIENT_HEADERS") or "")
        api_key = None if "authorization" in chosen else variable("PHOENIX_API_KEY")
    else:
        chosen = {name.lower(): value for name, value in (headers or {}).items()}
    return chosen | ({"authorization": f"Bearer {api_key.strip()}"} if api_key else {})


def _headers_in(text: str) -> dict[str, str]:
    """Headers as the variables of OpenTelemetry have them: `name=value,name=value`, URL-encoded."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs if name.strip()}
