"""What `ragspan worker` says, and what comes out of it."""

from __future__ import annotations

import re
import signal

from waiting import until
from worker_parts import SpanMaker, a_record, ids_of
from worker_process import is_empty, publish


def test_a_worker_says_what_it_does_and_what_it_has_done(broker, run_worker, backend, monkeypatch):
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": backend.url,
        "RAGSPAN_METRICS": "context_adherence",
        "RAGSPAN_CONCURRENCY": "5",
        "RAGSPAN_JUDGING": "thread",
    }.items():
        monkeypatch.setenv(name, value)
    publish(broker, a_record("one"), a_record("two"))

    code, said = run_worker(
        *("--broker", broker.url, "--health", "127.0.0.1:0"),
        *("--metrics", "completeness,faithfulness", "--concurrency=3"),
        use=lambda log: until(lambda: is_empty(broker), what="an empty stream"),
        number=signal.SIGINT,
    )

    assert code == 0
    page = re.search(r"http://127.0.0.1:\d+/healthz", said)[0]
    what = "3 at a time, completeness, faithfulness by overlap"
    assert said.splitlines() == [
        f"ragspan worker: records of stream ragspan at 127.0.0.1:{broker.port}, {what}; health at {page}",
        "ragspan worker: 2 records scored, 0 given back, 0 put aside",
    ]
    answers = {span.record: span for span in backend.answers()}
    assert set(answers) == {"one", "two"}
    for span in answers.values():
        scores = {name for name in span.attributes if name.startswith("ragspan.score.")}
        assert scores == {"ragspan.score.completeness", "ragspan.score.faithfulness"}
    assert {(int(span.trace_id, 16), int(span.span_id, 16)) for span in backend.spans} == {
        ids for name in ("one", "two") for ids in ids_of(SpanMaker().score(a_record(name))).values()
    }
