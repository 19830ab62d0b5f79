"""`ragspan worker` as a process."""

from __future__ import annotations

import signal

import pytest
from servers.judge import FleetJudge
from worker_parts import SpanMaker, a_record, ids_of
from worker_process import in_work, is_empty, publish, start_worker

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


def test_the_log_holds_no_secret_no_text_of_users_and_no_line_for_each_request(make_broker, tmp_path, backend):
    broker = make_broker(
        config='authorization { user: "ann", password: "secret-password" }',
        view="ann:secret-password",
    )
    broker.start()
    judge = FleetJudge()
    worker = start_worker(
        broker,
        tmp_path / "worker.log",
        "--judge=openai:small",
        "--broker",
        broker.url.replace("//", "//ann:secret-password@"),
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=secret-header",
        RAGSPAN_JUDGE_API_KEY="secret-key",
        RAGSPAN_JUDGE_BASE_URL=judge.base_url,
    )
    try:
        publish(broker, *(a_record(f"record-{number}", question=f"the secret-{number}") for number in range(10)))
        worker.until(lambda: is_empty(broker), what="an empty stream")
        judge.status = 401
        publish(broker, a_record("refused", question="the secret-x"))
        worker.until_it_says("nacked: judge_outage")
        broker.restart()
        worker.until(lambda: in_work(broker) is not None, what="the broker")
        assert worker.ends() == 0
    finally:
        worker.kill()
        judge.close()

    assert len(judge.asked) >= 11
    assert "secret" not in worker.log
    assert "HTTP Request" not in worker.log
    assert len(worker.log.splitlines()) < 20, worker.log
