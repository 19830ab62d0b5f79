"""What an endpoint's reply to an OTLP request means, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ragspan.addresses import shown_url
from ragspan.config import variable
from ragspan.doctor.redaction import header_names
from ragspan.doctor.watching import Reply
from ragspan.telemetry.environment import Signal

_SHOWN = 160  # characters of what a server says
_REJECTED = {"traces": "rejected_spans", "metrics": "rejected_data_points", "logs": "rejected_log_records"}
_RESPONSES = {
    "traces": ("trace.v1.trace_service", "ExportTraceServiceResponse"),
    "metrics": ("metrics.v1.metrics_service", "ExportMetricsServiceResponse"),
    "logs": ("logs.v1.logs_service", "ExportLogsServiceResponse"),
}
_MIME_PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """What came of a request."""

    is_taken: bool
    found: str
    advice: str | None = None


def meaning_of(reply: Reply, signal: Signal) -> Meaning:
    """What the reply says about the data of this signal, whatever the exporter makes of it."""
    status = reply.status
    if status < _REDIRECTS:
        return _meaning_of_success(reply, signal)
    if status < _CLIENT_ERRORS:
        location = shown_url(reply.headers.get("location", "")) or "elsewhere"
        return Meaning(
            is_taken=False,
            found=f"HTTP {status}, a redirect to {location}: the exporter follows none, takes it for success, and the "
            "data are lost",
            advice=f"set {_variables(signal)} to the address that it points to, if that is the receiver's",
        )
    default = "the receiver itself has failed: see its log" if status >= _SERVER_ERRORS else "see the receiver's log"
    return Meaning(
        is_taken=False, found=f"HTTP {status}{_words(reply)}", advice=_said(_ADVICE.get(status, default), signal)
    )


def advice_on_words(words: str, signal: Signal) -> str | None:
    """What to do about a failure of which only an exporter's own words are known, as with gRPC."""
    return next((_said(advice, signal) for mark, advice in _ADVICE_ON_GRPC.items() if mark in words), None)


def _meaning_of_success(reply: Reply, signal: Signal) -> Meaning:
    if "text/html" in reply.headers.get("content-type", ""):
        return Meaning(
            is_taken=False,
            found=f"HTTP {reply.status} with a web page: what answers is no OTLP receiver, though the exporter takes "
            "it for success",
            advice=_wrong_path(signal),
        )
    rejected, why = _rejected(reply, signal)
    if rejected:
        return Meaning(
            is_taken=False,
            found=f"HTTP {reply.status}, but the receiver has rejected what it was sent{why}",
            advice="see the receiver's log and limits",
        )
    return Meaning(is_taken=True, found=f"HTTP {reply.status}{why}")


def _rejected(reply: Reply, signal: Signal) -> tuple[int, str]:
    """How much of a request that succeeded was thrown away all the same, and the receiver's words about it."""
    try:
        if reply.headers.get("content-type", "").startswith(_MIME_PROTOBUF):
            partial = _decoded(reply.body, signal).partial_success
            count, words = getattr(partial, _REJECTED[signal]), partial.error_message
        else:
            partial = json.loads(reply.body or b"{}").get("partialSuccess") or {}
            count, words = int(partial.get(_camel(_REJECTED[signal]), 0)), partial.get("errorMessage", "")
    except Exception:  # noqa: BLE001 - many receivers answer something else, which says nothing about rejections
        return 0, ""
    return count, f": {words[:_SHOWN]}" if isinstance(words, str) and words else ""


def _decoded(body: bytes, signal: Signal) -> Any:
    import importlib

    package, message = _RESPONSES[signal]
    module = importlib.import_module(f"opentelemetry.proto.collector.{package}_pb2")
    return getattr(module, message).FromString(body)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _words(reply: Reply) -> str:
    """The server's own words, where they are text."""
    kind = reply.headers.get("content-type", "")
    if "html" in kind or "protobuf" in kind:
        return ""
    words = " ".join(reply.body.decode("utf-8", "replace").split())
    return f": {words[:_SHOWN]}" if words else ""


def _variables(signal: Signal) -> str:
    """The variable that sets the endpoint now, or would."""
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    return own if variable(own) else "OTEL_EXPORTER_OTLP_ENDPOINT"


def _wrong_path(signal: Signal) -> str:
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    if variable(own):
        return f"{own} is used as it stands: it has to end in the receiver's path, mostly /v1/{signal}"
    return (
        f"/v1/{signal} is appended to OTEL_EXPORTER_OTLP_ENDPOINT, so it must not hold that path itself; where the "
        f"receiver has another, set {own}, which is used as it stands"
    )


def _wrong_key(signal: Signal) -> str:
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_HEADERS"
    name = own if variable(own) else "OTEL_EXPORTER_OTLP_HEADERS"
    sent = ", ".join(header_names(variable(name)))
    now = f"it now sends {sent}" if sent else "it now sends none"
    return f"{name} has to hold the key as the tool's documentation says, such as authorization=Bearer%20…; {now}"


def _said(advice: str | Callable[[Signal], str], signal: Signal) -> str:
    return advice.format(signal=signal) if isinstance(advice, str) else advice(signal)


_Advice: TypeAlias = "str | Callable[[Signal], str]"
_ADVICE: Mapping[int, _Advice] = {
    400: "the receiver cannot read the request: see its log, and unset OTEL_EXPORTER_OTLP_COMPRESSION",
    401: _wrong_key,
    403: _wrong_key,
    404: _wrong_path,
    405: _wrong_path,
    407: "a proxy stands between and wants a password: put the host into NO_PROXY, or the password into the URL",
    413: "a proxy or the receiver takes only small requests: OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64 makes them small",
    415: "it takes another encoding: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and unset "
    "OTEL_EXPORTER_OTLP_COMPRESSION; or it is no receiver of {signal} at all",
    422: "a header is missing or names nothing that is there: MLflow wants OTEL_EXPORTER_OTLP_HEADERS=x-mlflow-experiment-id=<number>",
    429: "the receiver's rate limit is reached: sample fewer traces, or raise it",
    501: "it cannot take spans as it is set up: MLflow needs a SQL store, --backend-store-uri sqlite:///mlflow.db",
    502: "a proxy answers, but the receiver behind it does not",
    503: "the receiver is not ready or overloaded",
    504: "a proxy answers, but the receiver behind it does not",
}
_ADVICE_ON_GRPC: Mapping[str, _Advice] = {
    "UNAUTHENTICATED": _wrong_key,
    "PERMISSION_DENIED": _wrong_key,
    "UNIMPLEMENTED": "what listens there speaks gRPC, but is no receiver of this signal",
    "SSL": "begin the address with http:// where no TLS is spoken: without it, gRPC takes TLS for granted",
    "RESOURCE_EXHAUSTED": "the receiver is overloaded, or takes only smaller requests",
}
_REDIRECTS, _CLIENT_ERRORS, _SERVER_ERRORS = 300, 400, 500
