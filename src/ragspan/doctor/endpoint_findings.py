"""What one exchange with an OTLP endpoint shows of it.

An exporter reports success also for a redirect, which it does not follow, for a web page, and for spans that the receiver
rejects. So the endpoint's own reply is kept beside what the exporter says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragspan.addresses import Cause, cause_in, cause_of, named_cause, shown_url
from ragspan.config import variable
from ragspan.doctor import Finding, finding
from ragspan.doctor.advice import Code
from ragspan.telemetry.environment import GRPC_PORT, HTTP_PORT

if TYPE_CHECKING:
    import requests

_REDIRECTS, _ERRORS, _FAULTS = 300, 400, 500  # HTTP
_SHOWN = 160  # characters of what a server says
_OWN_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@dataclass(kw_only=True, slots=True)
class Exchange:
    """What an OTLP exporter of spans sent, and what came of it."""

    url: str
    is_grpc: bool
    proxy: str | None = None
    reply: requests.Response | None = None
    """The last one; None also where replies cannot be seen, as with gRPC."""
    error: BaseException | None = None
    """Of the last request without a reply."""
    successes: list[bool] = field(default_factory=list)
    """What the exporter says of each batch."""


def endpoint_finding(exchange: Exchange, complaints: Sequence[str]) -> Finding:
    """What became of what was sent."""
    url = shown_url(exchange.url) + (" (gRPC)" if exchange.is_grpc else "")
    if exchange.proxy:
        url += f" (through the proxy {shown_url(exchange.proxy)})"
    if exchange.reply is not None:
        code, meaning = _meaning(exchange.reply)
        is_taken = code == "endpoint_accepts"
        words = f"{url} {'accepts them' if is_taken else 'does not accept them'}: {meaning}"
        return finding("endpoint", code, "ok" if is_taken else "failed", words, status=exchange.reply.status_code)
    if exchange.successes and all(exchange.successes):
        return finding("endpoint", "endpoint_accepts", "ok", f"{url} accepts them, as the exporter says")
    if exchange.error is not None and (why := cause_of(exchange.error)):
        code = code_of_silence(exchange.url, named_cause(why))
        found = f"{url} cannot be reached: {why}"
        return finding("endpoint", code, "failed", found, is_misuse=code == "endpoint_no_address")
    if exchange.successes or exchange.error is not None:
        reason = last_of(complaints) or f": {exchange.error or 'the exporter does not say why'!r}"
        code = code_of_grpc(exchange.url, reason) if exchange.is_grpc else code_of_silence(exchange.url, None)
        return finding("endpoint", code, "failed", f"{url} does not accept them{reason}")
    found = f"the exporter did not finish with {url} in time"
    return finding("endpoint", "endpoint_unreachable", "failed", found)


def code_of_silence(url: str, cause: Cause | None) -> Code:
    """What kept an endpoint of OTLP over HTTP from an answer."""
    if _port(url) == GRPC_PORT and cause not in {"untrusted", "no_address", "unresolved"}:
        return "endpoint_is_for_grpc"
    return _BY_CAUSE.get(cause, "endpoint_unreachable")


def code_of_grpc(url: str, said: str) -> Code:
    """What is wrong at an endpoint of OTLP over gRPC, by the status codes in what its exporter logs."""
    if any(status in said for status in ("UNAUTHENTICATED", "PERMISSION_DENIED")):
        return "endpoint_wants_key"
    if "SSL" in said:
        return "grpc_no_tls"
    return (
        "endpoint_is_for_http" if _port(url) == HTTP_PORT else code_of_silence(url, named_cause(cause_in(said) or ""))
    )


def _port(url: str) -> int | None:
    try:
        return urlsplit(url if "://" in url else f"//{url}").port
    except ValueError:
        return None


_BY_CAUSE: Mapping[Cause | None, Code] = {
    "no_address": "endpoint_no_address",
    "untrusted": "endpoint_untrusted",
    "no_tls": "endpoint_no_tls",
    "unresolved": "endpoint_unresolved",
    "no_http": "endpoint_no_http",
    "refused": "endpoint_refused",
}
_BY_STATUS: Mapping[int, Code] = {
    **dict.fromkeys((400, 415), "endpoint_cannot_read"),
    **dict.fromkeys((401, 403), "endpoint_wants_key"),
    **dict.fromkeys((404, 405), "endpoint_wrong"),
    413: "endpoint_too_large",
    422: "endpoint_wants_header",
    501: "endpoint_takes_no_spans",
}


def _meaning(reply: requests.Response) -> tuple[Code, str]:
    """What the reply means, whatever the exporter makes of it, and the reply in words."""
    kind = reply.headers.get("content-type", "")
    words = f"HTTP {reply.status_code}"
    if _REDIRECTS <= reply.status_code < _ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        lost = "the exporter does not follow it and reports success, but the data are lost"
        return "endpoint_redirects", f"{words}, a redirect to {location}: {lost}"
    if reply.status_code >= _ERRORS:
        said = (
            "" if "html" in kind or "protobuf" in kind else " ".join(reply.content.decode("utf-8", "replace").split())
        )
        by_own = f" (by {_OWN_ENDPOINT})" if variable(_OWN_ENDPOINT) else ""
        code = _BY_STATUS.get(
            reply.status_code, "endpoint_failed" if reply.status_code >= _FAULTS else "endpoint_rejects"
        )
        return _own(code), words + (f": {said[:_SHOWN]}" if said else "") + by_own
    if "text/html" in kind:
        found = f"{words} with a web page: this is not an OTLP receiver, though the exporter reports success"
        return _own("endpoint_wrong"), found
    rejection = _rejection(reply)
    if rejection is None:
        return "endpoint_accepts", words
    return "endpoint_rejects", f"{words}, but the receiver rejected the data{rejection}"


def _own(code: Code) -> Code:
    """The code for a wrong address, by the variable that it is from."""
    return "traces_endpoint_wrong" if code == "endpoint_wrong" and variable(_OWN_ENDPOINT) else code


def _rejection(reply: requests.Response) -> str | None:
    """What a receiver says that accepts a request and rejects its data; None if it rejects nothing."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(reply.content).partial_success
    except Exception:  # noqa: BLE001 - many receivers answer something else
        return None
    said = f": {partial.error_message[:_SHOWN]}" if partial.error_message else ""
    return said if partial.rejected_spans else None


def last_of(complaints: Sequence[str]) -> str:
    """The last line of the log."""
    return f": {complaints[-1]}" if complaints else ""
