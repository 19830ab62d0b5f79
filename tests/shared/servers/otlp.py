"""Endpoints of OTLP, and spans as an exporter sends them."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from shared_judging import Labels

from servers.http import LocalHttp

RECORD_ID = "ragspan.record_id"
DELIVERY_COUNT = "ragspan.delivery.count"
_SCORE = "ragspan.score."
_LONGEST_HOLD = 120.0  # seconds


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, object]
    trace_state: str
    resource: dict[str, object]
    """The attributes of what sent it."""


def spans_in(body, kind=ReceivedSpan):
    """The spans of a request of OTLP."""
    return [
        kind(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes=_plain(span.attributes),
            trace_state=span.trace_state,
            resource=_plain(resource.resource.attributes),
        )
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _plain(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


class OtlpListener(LocalHttp):
    """Takes OTLP over HTTP on this machine, and answers as a test tells it to.

    `answer` is a function from the path of a request to a status, headers and a body.
    """

    def __init__(self, **options):
        self.answers(200, Content_Type="application/x-protobuf")
        self.requests = []
        self.headers = []
        self.spans = []
        self.labels = Labels()
        super().__init__(self._answer, **options)

    def answers(self, status, body=b"", **headers):
        self.answer = lambda _path: (status, {name.replace("_", "-"): text for name, text in headers.items()}, body)

    def hangs(self):
        """Does not answer before the test is over."""
        self.answer = self.hold

    def _answer(self, request):
        self.headers.append(request.headers)
        self.requests.append(request.path)
        if "traces" in request.path:
            self.spans += spans_in(request.body)
        if "metrics" in request.path:
            self.labels.add(request.body)
        return self.answer(request.path)


class TakenSpan(ReceivedSpan):
    @property
    def worker(self):
        """Which worker sent it."""
        return str(self.resource.get("service.instance.id", ""))

    @property
    def record(self):
        """The record whose answer this span is; None for the spans below it."""
        return self.attributes.get(RECORD_ID)

    @property
    def scores(self):
        """The metrics that it has a score of."""
        return [name.removeprefix(_SCORE) for name in self.attributes if name.startswith(_SCORE)]

    @property
    def delivery(self):
        """Which delivery of the record it says that it is of."""
        return int(self.attributes.get(DELIVERY_COUNT, 1))


class FleetBackend(LocalHttp):
    """An OTLP endpoint.

    `status` is what it answers with, 200 if all is well; it keeps spans only then. `refused` is a record whose spans it
    refuses for good, together with all that is sent with them.
    """

    def __init__(self, **options):
        self.status = 200
        self.refused = None
        self.spans = []
        self.offered = 0
        """Requests with spans that came, whatever was answered."""
        self._answers = threading.Event()
        self._answers.set()
        super().__init__(self._reply_to, **options)

    def hold_replies(self):
        """Keep what comes, but answer only after `release()`."""
        self._answers.clear()

    def release(self):
        self._answers.set()

    def answers(self):
        """The answers' own spans, in the order in which they came."""
        return [span for span in list(self.spans) if span.record is not None]

    def records(self):
        """The records that have been scored."""
        return {span.record for span in self.answers()}

    def close(self):
        self.release()
        super().close()

    def _reply_to(self, request):
        if request.path != "/v1/traces":
            return 404, {}, b""
        spans = spans_in(request.body, TakenSpan)
        self.offered += 1
        status = self.status
        if self.refused is not None and any(span.record == self.refused for span in spans):
            status = 400
        if status == 200:
            self.spans += spans
        self._answers.wait(_LONGEST_HOLD)
        return status, {"Content-Type": "application/x-protobuf"}, b""
