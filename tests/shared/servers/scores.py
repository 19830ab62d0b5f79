"""A server on this machine to which native writers write; who derives from it answers as a backend does."""

from __future__ import annotations

import json
from collections import deque

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from servers.http import LocalHttp


class ScoreServer(LocalHttp):
    """Answers requests by `reply_to`, unless `script` has a reply for the next one.

    A reply is a status, or a status with a body and headers, or a function of the request that gives one; None stands for what
    the server would do. Spans are taken at every path to `/v1/traces`. A request that a backend would not understand is refused,
    and fails the test at its end. `limit` is that of a request's body, in bytes; `refused` are names that a backend does not take.
    """

    keeps_connections = False

    def __init__(self):
        self.requests = []
        self.mistakes = []
        self.script = deque()
        self.limit = 5_000_000
        self.refused = set()
        super().__init__(self._answer)

    def reply_to(self, request):
        raise NotImplementedError

    def take_span(self, span, headers):
        """A span as an exporter sends it, and the headers of its request."""

    def close(self):
        super().close()
        assert not self.mistakes, self.mistakes

    def hangs(self, _):
        """A reply that does not come before the test is over."""
        return self.hold()[0]

    def _answer(self, request):
        reply = self._reply_to(request)
        status, content, headers = (reply, "", {}) if isinstance(reply, int) else (*reply, {})[:3]
        return status, headers, (content if isinstance(content, str) else json.dumps(content)).encode()

    def _reply_to(self, request):
        try:
            if request.path.endswith("/v1/traces"):
                for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans:
                    for span in (span for scope in resource.scope_spans for span in scope.spans):
                        self.take_span(span, request.headers)
                return 200, "", {"Content-Type": "application/x-protobuf"}
            self.requests.append(request)
            if len(request.body) > self.limit:
                return 413
            reply = self.script.popleft() if self.script else None
            if callable(reply):
                reply = reply(request)
            return self.reply_to(request) if reply is None else reply
        except Exception as error:
            self.mistakes.append(error)
            return 422
