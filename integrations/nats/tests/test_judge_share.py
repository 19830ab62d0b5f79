"""A judge that is asked about a share of the answers by real workers, one of which is started anew in the middle."""

from __future__ import annotations

import pytest
from doubtful import finds_what_is_nowhere, some_answers
from servers.otlp import FleetBackend
from shared_judging import REQUESTS_AN_ANSWER, Labels
from worker_process import is_empty, publish

pytestmark = pytest.mark.slow


class MeasuringBackend(FleetBackend):
    """Keeps the counter of labels as well."""

    def __init__(self):
        self.labels = Labels()
        super().__init__()

    def _reply_to(self, request):
        if request.path == "/v1/metrics":
            self.labels.add(request.body)
            return 200, {"Content-Type": "application/x-protobuf"}, b""
        return super()._reply_to(request)


@pytest.fixture
def backend():
    with MeasuringBackend() as made:
        yield made


def test_the_share_holds_over_the_restart_of_a_worker_and_the_rate_is_right(broker, backend, make_worker, fake_openai):
    fake_openai.answer = finds_what_is_nowhere(fake_openai)
    answers = some_answers(1000, chances=(80, 10, 4, 3, 2, 1))
    for part in (answers[:400], answers[400:]):
        worker = make_worker(
            OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
            OTEL_METRICS_EXPORTER="otlp",
            RAGSPAN_JUDGE="openai:small",
            RAGSPAN_JUDGE_API_KEY="key",
            RAGSPAN_JUDGE_BASE_URL=fake_openai.base_url,
            RAGSPAN_JUDGE_SHARE="0.2:0.1",
        )
        publish(broker, *part)
        worker.until(lambda: is_empty(broker), what="an empty stream")
        assert worker.ends() == 0, worker.log

    spans = {span.record: span.attributes for span in backend.answers()}
    assert len(spans) == len(answers)
    judges = [about["ragspan.judge.faithfulness"] for about in spans.values()]
    asked = [about for about in spans.values() if "ragspan.asked" in about]
    assert (
        len(fake_openai.requests)
        == REQUESTS_AN_ANSWER * len(asked)
        == REQUESTS_AN_ANSWER * judges.count("openai:small")
    )
    assert len(asked) == pytest.approx(len(answers) / 5, rel=0.05)
    rate = backend.labels.rate_of("context_adherence")
    assert rate.answers == len(answers)
    assert rate.lower <= sum(not one.record_id.endswith("-0") for one in answers) / len(answers) <= rate.upper
    assert rate.upper - rate.lower < 0.25
