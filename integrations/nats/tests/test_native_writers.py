"""Workers that also write scores to a backend's own: a record is done with when these are written."""

from __future__ import annotations

import json
import threading

import pytest
from local_http import LocalHttp
from worker_parts import a_record
from worker_process import in_work, is_empty, publish

pytestmark = pytest.mark.slow


class Phoenix:
    """Takes annotations when it may; until then it is busy."""

    def __init__(self):
        self.is_busy = True
        self.refusals = 0
        self.names = []
        self._lock = threading.Lock()
        self._http = LocalHttp(self._reply)
        self.url = self._http.url

    def close(self):
        self._http.close()

    def _reply(self, request):
        rows = request.content["data"]
        with self._lock:
            if self.is_busy:
                self.refusals += 1
                return 503, {"Retry-After": "0"}, b""
            self.names += [row["name"] for row in rows]
        return 200, {}, json.dumps({"data": [{"id": str(number)} for number in range(len(rows))]}).encode()


@pytest.fixture
def phoenix():
    pytest.importorskip("ragspan_phoenix")
    made = Phoenix()
    yield made
    made.close()


def test_a_record_is_not_acknowledged_before_its_native_scores_are_written(broker, make_worker, backend, phoenix):
    publish(broker, a_record())
    worker = make_worker(
        "--metrics=faithfulness",
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
        PHOENIX_COLLECTOR_ENDPOINT=phoenix.url,
        RAGSPAN_EMITTERS="phoenix,otel",
    )
    worker.until(lambda: phoenix.refusals, what="an annotation")
    worker.until(lambda: backend.records() == {"record-1"}, what="the span")
    assert in_work(broker) == 1

    phoenix.is_busy = False

    worker.until(lambda: is_empty(broker), what="an empty stream")
    assert phoenix.names == ["faithfulness"]
    assert worker.ends() == 0
