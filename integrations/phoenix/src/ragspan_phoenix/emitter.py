"""The emitter that puts scores into Phoenix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ragspan.arguments import FLAG, TEXT
from ragspan.config import CaptureContent, variable
from ragspan.delivery import Annotation, ScoreBackend, ScoreWriter
from ragspan.delivery.backend import Endpoint
from ragspan.delivery.spans import RetryingSpanExporter
from ragspan.delivery.writer import present
from ragspan.judges.base import ContextRating, ContextVerdict
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry.score_attributes import annotator_kind
from ragspan.telemetry.values import named

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from typing_extensions import Unpack

    from ragspan.delivery.writer import WriterOptions

_ENDPOINTS = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_BASE_URL")
"""In this order. That of the exporter of spans is a guess: Phoenix takes them where its API is."""
_TRACES_PATH = re.compile(r"/+v1/traces/?$")
_GRPC_PORT = 4317


class PhoenixAnnotations(ScoreWriter):
    """Writes each score as an annotation of the answer's span, and verdicts on contexts as annotations of documents.

    It comes after the emitter that makes or finds the answer's span, whose spans have to go to the same Phoenix:
    `emitters=[OTelEmitter(), PhoenixAnnotations()]`.

    An annotation has the metric's name, and its `identifier` names the record: to score a record again replaces what was
    written. A metric that does not apply has no annotation. What the overlap judge and HHEM say is of kind `CODE`, what
    a language model says is `LLM`. The metadata has `record_id`, `judge`, `threshold`, `prompt_version`, `fallback`, `late`,
    `refusal`, `details` and `usage`, as far as there is something to say.

    Args:
        base_url: of Phoenix, such as `http://127.0.0.1:6006`. None asks the environment as Phoenix's own client does:
            `PHOENIX_ENDPOINT`, `PHOENIX_COLLECTOR_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `PHOENIX_BASE_URL`,
            `PHOENIX_HOST` with `PHOENIX_PORT`; else it is port 6006 of this machine. Files `.env.phoenix` are not read.
        api_key: for a Phoenix that wants one. Where neither it nor `headers` are given: `PHOENIX_API_KEY`.
        headers: for each request; likewise `PHOENIX_CLIENT_HEADERS`.
        identifier: what the annotations' identifiers begin with. Two engines that score the same answers each for itself
            need different ones.
        documents: write verdicts on single contexts, which `context_utilization` and the metrics of chunks have, to the
            documents on the spans of the searches that found them.
        timeout: seconds, more than 0, that Phoenix may take to answer a request.
        options: those of every `ScoreWriter`: `capture_content`, `explanations`, `max_explanation_chars`, `failures`,
            `delivery`, `meter_provider`.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    name = "phoenix"
    endpoint: Endpoint

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        identifier: str = "ragspan",
        documents: bool = True,
        timeout: float = 30.0,
        **options: Unpack[WriterOptions],
    ) -> None:
        name, url = _address(base_url)
        self.endpoint = Endpoint.at(name, url, headers=_headers(api_key, headers), timeout=timeout)
        FLAG.check("documents", documents)  # `"false"` is true to Python
        TEXT.check("identifier", identifier)
        self._identifier = identifier
        self._documents = documents
        super().__init__(**options)

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> PhoenixAnnotations:
        """The emitter for the Phoenix at this address, for `ragspan.configure(phoenix=address)`."""
        return cls(base_url=address, capture_content=capture_content)

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same Phoenix, and keeps them while it is away."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        endpoint = self.endpoint
        inner = OTLPSpanExporter(f"{endpoint.url}/v1/traces", headers=dict(endpoint.headers))
        return RetryingSpanExporter(inner, exit_timeout=1.0)

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """An annotation of the answer's span for each score, and of the documents of its searches for each verdict on one."""
        items = [*super().items_of(scored, span)]
        if self._documents and any(scored.retrieval_spans):
            for metric, outcome in scored.outcomes.items():
                if isinstance(outcome, Score):
                    items.extend(self._of_documents(scored, metric, outcome))
        return items

    def connect(self) -> ScoreBackend[Annotation]:
        from ragspan.delivery.http import HttpClient
        from ragspan_phoenix.backend import PhoenixServer

        return PhoenixServer(HttpClient(self.endpoint), identifier=self._identifier)

    def _of_documents(self, scored: ScoredRecord, metric: str, score: Score) -> Iterator[Annotation]:
        verdicts = [one for one in score.evidence if isinstance(one, ContextVerdict | ContextRating | JudgedContext)]
        places = places_of(scored.record) if verdicts else []
        record_id, judge = named(scored.record.record_id), score.judge and named(score.judge)
        for verdict in verdicts:
            value, label = _of_verdict(verdict)
            for search, position in places[verdict.index] if 0 <= verdict.index < len(places) else ():
                span = scored.retrieval_spans[search]
                if span is None or not span.sampled:
                    continue
                yield Annotation(
                    trace_id=f"{span.trace_id:032x}",
                    span_id=f"{span.span_id:016x}",
                    name=named(metric),
                    record_id=record_id,
                    ended_ns=scored.record.ended_ns,
                    position=position,
                    value=value,
                    annotator=annotator_kind(score),
                    label=label,
                    explanation=self._content.explanation_of_verdict(verdict.explanation),
                    metadata=present({"record_id": record_id, "judge": judge}),
                )


def _of_verdict(verdict: ContextVerdict | ContextRating | JudgedContext) -> tuple[float, str | None]:
    """The value and the label."""
    if isinstance(verdict, ContextVerdict):
        return float(verdict.useful), "useful" if verdict.useful else "not useful"
    return verdict.value, None


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
    found = retrieval.contexts
    if context.rank is not None and context.rank < len(found) and _are_same(found[context.rank], context):
        return context.rank
    by_id = (place for place, other in enumerate(found) if context.id is not None and other.id == context.id)
    by_text = (place for place, other in enumerate(found) if other.text == context.text)
    exact = (place for place, other in enumerate(found) if _are_same(other, context))
    return next(exact, next(by_id, next(by_text, None)))


def _are_same(one: RetrievedContext, other: RetrievedContext) -> bool:
    return one.id == other.id and one.text == other.text


def phoenix_server(
    base_url: str | None = None,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> Endpoint:
    """The server at this address, or where the environment has it; see `PhoenixAnnotations`.

    Raises:
        ConfigurationError: it is no address.
    """
    name, url = _address(base_url)
    return Endpoint.at(name, url, headers=_headers(api_key, headers), timeout=timeout)


def _address(base_url: str | None) -> tuple[str, str]:
    """Where the address comes from, and the address."""
    if base_url is not None:
        return "base_url", base_url
    for name in _ENDPOINTS:
        endpoint = variable(name)
        if endpoint is not None and not _is_for_grpc(name, endpoint):
            return name, _TRACES_PATH.sub("", endpoint)
    # `PHOENIX_HOST` is what the server binds to, so it may be a bare name, or stand for all addresses.
    host = variable("PHOENIX_HOST") or "127.0.0.1"
    if "://" in host:
        return "PHOENIX_HOST", host
    reachable = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - what the server binds to, not we
    name = f"[{reachable}]" if ":" in reachable else reachable
    return "PHOENIX_HOST", f"http://{name}:{variable('PHOENIX_PORT') or '6006'}"


def _is_for_grpc(name: str, endpoint: str) -> bool:
    """Whether this is the collector's port for gRPC, on which there is no REST API."""
    try:
        return name == "OTEL_EXPORTER_OTLP_ENDPOINT" and urlsplit(endpoint).port == _GRPC_PORT
    except ValueError:
        return False


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
