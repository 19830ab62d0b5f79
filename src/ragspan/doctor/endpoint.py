"""What one exchange with an OTLP endpoint shows of it: an exporter reports success also for a redirect, a web page and rejected spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragspan.addresses import cause_in, cause_of, shown_url
from ragspan.config import variable
from ragspan.doctor import Finding

if TYPE_CHECKING:
    import requests

_REDIRECTS, _ERRORS = 300, 400  # HTTP
_SHOWN = 160  # characters of what a server says
_OWN_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_KEY = (
    "OTEL_EXPORTER_OTLP_HEADERS (OTEL_EXPORTER_OTLP_TRACES_HEADERS replaces it) has to contain the key as the tool's "
    "documentation says, such as authorization=Bearer%20…"
)
_FORMAT = "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and unset OTEL_EXPORTER_OTLP_COMPRESSION"
_ADDRESS = (
    "/v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not contain that path itself; if the receiver has "
    "another path, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used unchanged"
)
_ADVICE: Mapping[int, str] = {
    400: _FORMAT,
    401: _KEY,
    403: _KEY,
    404: _ADDRESS,
    405: _ADDRESS,
    413: "a proxy or the receiver takes only small requests: set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64",
    415: _FORMAT,
    422: "a header is missing or wrong; MLflow wants OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>",
}
"""By the status of a reply."""
_HINTS: Mapping[str, str] = {
    "UNAUTHENTICATED": _KEY,
    "PERMISSION_DENIED": _KEY,
    "address that begins with": "write it as http://localhost:4318",
    "is not trusted": "name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE",
    "no TLS": "does the address have to begin with http:// in place of https://?",
    "SSL": "begin the address with http:// if the receiver uses no TLS: without it, gRPC uses TLS",
}
"""By words of why a connection failed."""


@dataclass(kw_only=True, slots=True)
class Exchange:
    """What an OTLP exporter of spans sent, and what came of it."""

    url: str
    is_grpc: bool
    reply: requests.Response | None = None
    """The last one; None also where replies cannot be seen, as with gRPC."""
    error: BaseException | None = None
    """Of the last request without a reply."""
    successes: list[bool] = field(default_factory=list)
    """What the exporter says of each batch."""


def endpoint_finding(exchange: Exchange, complaints: Sequence[str]) -> Finding:
    """What became of what was sent."""
    url = shown_url(exchange.url) + (" (gRPC)" if exchange.is_grpc else "")
    if exchange.reply is not None:
        return _of_reply(exchange.reply, url)
    if exchange.successes and all(exchange.successes):
        return Finding("endpoint", "endpoint_accepts", "ok", f"{url} accepts them, as the exporter says")
    said = complaints[-1] if complaints else repr(exchange.error or "the exporter does not say why")
    why = (exchange.error and cause_of(exchange.error)) or cause_in(said)
    found = f"{url} cannot be reached: {why}" if why else f"{url} does not accept them: {said}"
    usual = "start the receiver, or correct the address and its port (4318 for http/protobuf, 4317 for grpc)"
    advice = next((hint for words, hint in _HINTS.items() if words in f"{why} {said}"), usual)
    return Finding("endpoint", "endpoint_unreachable", "failed", found, advice)


def _of_reply(reply: requests.Response, url: str) -> Finding:
    """What the reply means, whatever the exporter makes of it."""
    kind, status = reply.headers.get("content-type", ""), reply.status_code
    code, words, advice = "endpoint_refuses", "", _ADVICE.get(status, "see the receiver's log and limits")
    if _REDIRECTS <= status < _ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        words = f", a redirect to {location}, which the exporter does not follow; it reports success"
        code, advice = "endpoint_redirects", "set OTEL_EXPORTER_OTLP_ENDPOINT to the address that it points to"
    elif status >= _ERRORS:
        is_text = not ("html" in kind or "protobuf" in kind)
        said = " ".join(reply.content.decode("utf-8", "replace").split()) if is_text else ""
        words = f": {said[:_SHOWN]}" if said else ""
    elif "text/html" in kind:
        words = " with a web page: this is not an OTLP receiver, though the exporter reports success"
        advice = _ADDRESS
    elif not (words := _rejected(reply)):
        return Finding("endpoint", "endpoint_accepts", "ok", f"{url} accepts them: HTTP {status}")
    if advice == _ADDRESS and variable(_OWN_ENDPOINT):
        advice = f"{_OWN_ENDPOINT} is used unchanged: it usually has to end in /v1/traces"
    return Finding("endpoint", code, "failed", f"{url} does not accept them: HTTP {status}{words}", advice)


def _rejected(reply: requests.Response) -> str:
    """What a receiver says that accepts a request and rejects its data."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(reply.content).partial_success
    except Exception:  # noqa: BLE001 - many receivers answer something else
        return ""
    said = f", but the receiver rejected the data: {partial.error_message[:_SHOWN]}"
    return said if partial.rejected_spans else ""
