"""A tracing backend for the tests of a fleet: takes OTLP, and keeps what it has taken."""

from __future__ import annotations

import threading

from local_http import LocalHttp
from received_spans import ReceivedSpan, spans_in

RECORD_ID = "ragspan.record_id"
DELIVERY_COUNT = "ragspan.delivery.count"
_SCORE = "ragspan.score."
_LONGEST_HOLD = 120.0  # seconds


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


class FleetBackend:
    """An OTLP endpoint.

    `status` is what it answers with, 200 if all is well; it keeps spans only then. `refused` is a record whose spans it
    refuses for good, together with all that is sent with them.

    Args:
        listening: whether it can be reached from the start, or refuses connections until `listen()`.
    """

    def __init__(self, *, listening=True):
        self.status = 200
        self.refused = None
        self.spans = []
        self.offered = 0
        """Requests with spans that came, whatever was answered."""
        self._answers = threading.Event()
        self._answers.set()
        self._http = LocalHttp(self._reply, listening=listening)

    @property
    def url(self):
        return self._http.url

    def listen(self):
        self._http.listen()

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
        self._http.close()

    def _reply(self, request):
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
