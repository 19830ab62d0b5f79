"""`ragspan worker` as a process."""

from __future__ import annotations

import signal

import pytest
from worker_parts import SpanMaker, a_record, ids_of
from worker_process import is_empty, publish

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_worker_says_what_it_does_and_what_it_has_done(broker, make_worker, backend, number):
    publish(broker, a_record("one"), a_record("two"))
    worker = make_worker(
        "--metrics",
        "completeness,faithfulness",
        "--concurrency=3",
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
        RAGSPAN_METRICS="context_adherence",
        RAGSPAN_CONCURRENCY="5",
    )

    worker.until(lambda: is_empty(broker), what="an empty stream")
    assert worker.ends(number) == 0

    first, *_, last = worker.log.splitlines()
    assert first.startswith(
        f"ragspan worker: records of stream ragspan at 127.0.0.1:{broker.port}, 3 at a time, completeness, faithfulness by overlap"
    )
    assert last == "ragspan worker: 2 records scored, 0 given back, 0 put aside"
    answers = {span.record: span for span in backend.answers()}
    assert set(answers) == {"one", "two"}
    for span in answers.values():
        scores = {name for name in span.attributes if name.startswith("ragspan.score.")}
        assert scores == {"ragspan.score.completeness", "ragspan.score.faithfulness"}
    assert {(int(span.trace_id, 16), int(span.span_id, 16)) for span in backend.spans} == {
        ids for name in ("one", "two") for ids in ids_of(SpanMaker().score(a_record(name))).values()
    }
