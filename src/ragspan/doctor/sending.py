"""Exporters that are watched: what they were given, what the endpoint answered, and what they made of it.

An exporter says "success" for more than that: for a redirect, which it does not follow, for a web page, and for spans
that the receiver took in and threw away. So the endpoint's own answer is kept beside what the exporter says.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from ragspan.config import variable
from ragspan.telemetry.environment import Signal

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

_KEPT_BODY = 65_536  # bytes of an answer
_HTTP = "otlp_proto_http"
_GRPC = "otlp_proto_grpc"
_OTLP = {_HTTP, _GRPC}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What an endpoint answered to one request."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""
    """Its beginning."""


@dataclass(slots=True)
class Journal:
    """What became of everything that the watched exporters of one signal sent."""

    answers: list[Answer] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """Of requests that got no answer."""
    taken: set[int] = field(default_factory=set)
    """Ids of the spans that an exporter says it has sent."""
    refused: set[int] = field(default_factory=set)
    """Ids of those that it says it could not send."""
    session: requests.Session | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def exported(self, spans: Sequence[ReadableSpan], *, succeeded: bool) -> None:
        ids = {span.context.span_id for span in spans if span.context}
        with self.lock:
            (self.taken if succeeded else self.refused).update(ids)

    def close(self) -> None:
        """Let go of the connections; the exporter has done so with its own."""
        if self.session is not None:
            self.session.close()


def is_otlp(entry: EntryPoint) -> bool:
    return entry.name in _OTLP


def is_grpc(entry: EntryPoint) -> bool:
    return entry.name == _GRPC


def make_watched(entry: EntryPoint, journal: Journal, *, seconds: float) -> Any:
    """The exporter as the environment configures it, but for its patience.

    Args:
        entry: which one.
        journal: where its requests are noted.
        seconds: the longest that it may try.
    """
    exporter = entry.load()
    if entry.name == "console":
        return exporter(out=io.StringIO())  # the doctor's output is no place for it
    if not is_otlp(entry):
        return exporter()
    if entry.name != _HTTP or _brings_own_session():
        return exporter(timeout=seconds)
    return exporter(timeout=seconds, session=_watched_session(journal))


def watch_spans(exporter: Any, journal: Journal) -> SpanExporter:
    """The exporter of spans, with what it says of each batch noted."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Watched(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result: SpanExportResult = exporter.export(spans)
            journal.exported(spans, succeeded=result is SpanExportResult.SUCCESS)
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return Watched()


def _brings_own_session() -> bool:
    """Whether a credential provider makes the session: then requests go through it, and are not watched."""
    return any(
        variable(f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{part}CREDENTIAL_PROVIDER")
        for part in ("", "TRACES_", "METRICS_", "LOGS_")
    )


def _watched_session(journal: Journal) -> requests.Session:
    import requests

    class Session(requests.Session):
        def request(self, *args: Any, **kwargs: Any) -> requests.Response:
            try:
                response = super().request(*args, **kwargs)
            except Exception as error:
                with journal.lock:
                    journal.errors.append(error)
                raise
            with journal.lock:
                journal.answers.append(answer_of(response))
            return response

    journal.session = Session()
    return journal.session


def get_page(journal: Journal, url: str, *, seconds: float) -> Answer | None:
    """What the server answers to a plain GET, asked in the same way as it is sent spans, but without their headers."""
    if journal.session is None:
        return None
    try:
        return answer_of(journal.session.get(url, timeout=seconds, allow_redirects=False))
    except Exception:  # noqa: BLE001 - then it cannot be told who answers there
        return None


def answer_of(response: requests.Response) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status_code, headers=headers, body=response.content[:_KEPT_BODY])


class Watch:
    """Makes watched exporters for `providers_from_environment`, each signal with a journal of its own."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self.journals: dict[Signal, Journal] = {}

    def make(self, signal: Signal, entry: EntryPoint) -> Any:
        journal = self.journals.setdefault(signal, Journal())
        exporter = make_watched(entry, journal, seconds=self._seconds)
        return watch_spans(exporter, journal) if signal == "traces" else exporter
