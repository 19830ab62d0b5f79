from __future__ import annotations

import asyncio
import contextvars
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.exceptions import JudgeError
from ragspan.judges.session import report_usage
from ragspan.outcomes import MetricFailure, NotApplicable, Score, Usage
from ragspan.telemetry import is_suppressed


@pytest.fixture
def outcomes_of(fakes, make_engine):
    """The outcomes of metrics for one record."""

    def run(*metrics: object, **options: object):
        emitter = fakes.ListEmitter()
        engine = make_engine(*metrics, emitters=[emitter], **options)
        engine.submit(fakes.a_record())
        assert engine.flush(fakes.PATIENCE)
        return emitter.scored[0].outcomes

    return run


def raise_(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("kind", ["CallingMetric", "ThreadMetric"])
@pytest.mark.parametrize(
    "error",
    [ValueError("no"), KeyboardInterrupt("no"), SystemExit("no"), asyncio.CancelledError("no"), GeneratorExit("no")],
)
def test_what_a_metric_raises_is_its_failure_and_no_others(fakes, outcomes_of, kind: str, error: BaseException):
    bad = getattr(fakes, kind)(lambda _: raise_(error), "bad")
    outcomes = outcomes_of(bad, fakes.ConstantMetric())

    assert outcomes["bad"].error_type == type(error).__name__
    assert outcomes["constant"] == Score(value=1.0)


def test_the_worker_goes_on_after_a_metric_that_exits(fakes, make_engine):
    engine = make_engine(fakes.CallingMetric(lambda _: raise_(SystemExit(1))))
    for _ in range(3):
        engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert engine.stats().scored == 3
    assert engine.stats().errors == {"metric": 3}


def test_the_worker_goes_on_after_a_task_of_a_metric_that_exits(fakes, make_engine):
    """asyncio lets `SystemExit` out of any task, and stops the loop."""

    async def exits() -> None:
        raise SystemExit

    class Spawning(fakes.ConstantMetric):
        async def score(self, record):
            task = asyncio.ensure_future(exits())
            await asyncio.wait({task})
            return Score(value=float(isinstance(task.exception(), SystemExit)))

    emitter = fakes.ListEmitter()
    engine = make_engine(Spawning(), emitters=[emitter])
    for _ in range(2):
        engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert [scored.outcomes["constant"].value for scored in emitter.scored] == [1.0, 1.0]
    assert engine.stats().errors["worker"] == 2


@pytest.mark.parametrize("outage", [True, False])
def test_a_failure_says_whether_the_judges_service_is_out(fakes, outcomes_of, outage: bool):
    outcomes = outcomes_of(fakes.CallingMetric(lambda _: raise_(JudgeError("RateLimitError", "no", outage=outage))))

    assert [outcome.outage for outcome in outcomes.values()] == [outage]


def test_an_error_of_few_kinds_is_named_by_itself(outcomes_of, fakes):
    outcomes = outcomes_of(fakes.CallingMetric(lambda _: raise_(JudgeError("RateLimitError", "slow down"))))

    assert outcomes["calling"] == MetricFailure(error_type="RateLimitError", message="slow down")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError

    @property
    def error_type(self) -> str:
        raise RuntimeError


def test_an_error_that_cannot_be_printed_is_named_by_its_type(outcomes_of, fakes):
    outcomes = outcomes_of(fakes.CallingMetric(lambda _: raise_(Unprintable())))

    assert outcomes["calling"] == MetricFailure(error_type="Unprintable", message="")


def test_long_messages_are_cut(outcomes_of, fakes):
    outcomes = outcomes_of(fakes.CallingMetric(lambda _: raise_(ValueError("x" * 10_000))))

    assert outcomes["calling"].message == "x" * 500


@pytest.mark.parametrize("answer", [0.5, "good", {"value": 1}, True])
def test_an_answer_that_is_no_outcome_is_a_failure(outcomes_of, fakes, answer: object):
    outcome = outcomes_of(fakes.CallingMetric(lambda _: answer))["calling"]

    assert outcome.error_type == "invalid_outcome"
    assert type(answer).__name__ in outcome.message


def test_an_answer_of_none_is_a_failure(outcomes_of, fakes):
    class Forgetful(fakes.ConstantMetric):
        async def score(self, record):
            return None

    assert outcomes_of(Forgetful())["constant"].error_type == "invalid_outcome"


def test_a_plain_method_runs_in_a_thread(fakes, outcomes_of):
    names: list[str] = []
    outcomes_of(fakes.ThreadMetric(lambda _: names.append(threading.current_thread().name), "plain"))

    assert names == ["ragspan-plain"]


def test_a_plain_method_may_return_a_coroutine(fakes, outcomes_of):
    """As an async method does that somebody has wrapped."""

    class Wrapped(fakes.ConstantMetric):
        def score(self, record):
            return super().score(record)

    assert outcomes_of(Wrapped(0.75))["constant"] == Score(value=0.75)


@pytest.mark.parametrize("kind", ["CallingMetric", "ThreadMetric"])
def test_a_metric_runs_with_instrumentation_suppressed(fakes, outcomes_of, kind: str):
    seen: list[bool] = []
    outcomes_of(getattr(fakes, kind)(lambda _: seen.append(is_suppressed())))

    assert seen == [True]


@pytest.mark.parametrize("kind", ["CallingMetric", "ThreadMetric"])
def test_nothing_of_the_requests_context_reaches_a_metric(fakes, make_engine, kind: str):
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("of the request")
    span = trace.NonRecordingSpan(trace.SpanContext(trace_id=1, span_id=2, is_remote=False))
    seen: list[object] = []

    def look(_: object) -> None:
        seen.extend([variable.get(), trace.get_current_span().get_span_context().is_valid])

    engine = make_engine(getattr(fakes, kind)(look))
    with trace.use_span(span):
        engine.submit(fakes.a_record())
        assert engine.flush(fakes.PATIENCE)
        engine.submit(fakes.a_record())
        assert engine.flush(fakes.PATIENCE)

    assert seen == ["unset", False] * 2


@pytest.mark.parametrize("kind", ["CallingMetric", "ThreadMetric"])
def test_what_a_metric_spends_is_on_its_score(fakes, outcomes_of, kind: str):
    def spend(_: object) -> None:
        report_usage(Usage(requests=1, input_tokens=10))
        report_usage(Usage(requests=1, output_tokens=5, usd=0.5))

    outcomes = outcomes_of(getattr(fakes, kind)(spend), fakes.ConstantMetric())

    assert outcomes["calling"].usage == Usage(requests=2, input_tokens=10, output_tokens=5, usd=0.5)
    assert outcomes["constant"].usage is None


def test_a_usage_that_the_metric_states_itself_is_kept(fakes, outcomes_of):
    own = Usage(requests=7)

    def spend(_: object) -> Score:
        report_usage(Usage(requests=1))
        return Score(value=1.0, usage=own)

    assert outcomes_of(fakes.CallingMetric(spend))["calling"].usage == own


def test_a_metric_that_hangs_is_cancelled_at_its_timeout(fakes, outcomes_of):
    metric = fakes.HangingMetric()
    outcomes = outcomes_of(metric, metric_timeout=0.01)

    assert outcomes["hanging"] == MetricFailure(error_type="timeout", message="no outcome within 0.01 s")
    assert metric.was_cancelled.wait(fakes.PATIENCE)


def test_nobody_waits_for_a_metric_that_swallows_its_cancellation(fakes, outcomes_of):
    metric = fakes.StubbornMetric()

    assert outcomes_of(metric, metric_timeout=0.01)["hanging"].error_type == "timeout"


def test_nobody_waits_for_a_metric_that_blocks_its_thread(fakes, outcomes_of):
    metric = fakes.BlockingMetric()

    assert outcomes_of(metric, metric_timeout=0.01)["blocking"].error_type == "timeout"


@pytest.fixture
def score_until(fakes):
    """Submits records, one after the other, until an outcome of the metric is as wanted."""

    def run(engine, emitter, metric, wanted) -> None:
        began = time.monotonic()
        while True:
            engine.submit(fakes.a_record())
            if wanted(emitter.next().outcomes[metric.name]):
                return
            assert time.monotonic() - began < fakes.PATIENCE

    return run


def is_stuck(outcome: object) -> bool:
    return isinstance(outcome, MetricFailure) and outcome.error_type == "stuck"


def is_score(outcome: object) -> bool:
    return isinstance(outcome, Score)


def test_a_metric_that_blocks_holds_a_bounded_number_of_threads(fakes, make_engine, score_until):
    metric, emitter = fakes.BlockingMetric("stone"), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=2, metric_timeout=0.01)
    score_until(engine, emitter, metric, is_stuck)

    assert len([thread for thread in threading.enumerate() if thread.name == "ragspan-stone"]) == 2


def test_a_metric_whose_threads_come_back_is_run_again(fakes, make_engine, score_until):
    metric, emitter = fakes.BlockingMetric(), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=1, metric_timeout=0.01)
    score_until(engine, emitter, metric, is_stuck)
    metric.release()
    score_until(engine, emitter, metric, is_score)

    assert engine.stats().dropped == {}


def test_a_metric_that_swallows_cancellations_holds_a_bounded_number_of_tasks(fakes, make_engine, score_until):
    metric, emitter = fakes.StubbornMetric(), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=1, metric_timeout=0.001)
    score_until(engine, emitter, metric, is_stuck)

    assert len(emitter.scored) == 2 * 16 + 1


def test_a_metric_that_is_cancelled_in_good_order_is_never_stuck(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.HangingMetric(), emitters=[emitter], concurrency=8, metric_timeout=0.001)
    for _ in range(100):
        engine.submit(fakes.a_record())
    assert engine.flush(fakes.PATIENCE)

    assert {scored.outcomes["hanging"].error_type for scored in emitter.scored} == {"timeout"}


def test_runs_are_counted_in_the_metrics_of_ragspan_itself(fakes, make_engine):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    metrics = [
        fakes.CallingMetric(lambda _: Score(value=1.0, judge="jury"), "scored"),
        fakes.CallingMetric(lambda _: NotApplicable(reason="no_contexts"), "not_applicable"),
        fakes.CallingMetric(lambda _: 1 // 0, "failed"),
    ]
    engine = make_engine(*metrics, meter_provider=provider)
    engine.submit(fakes.a_record())
    assert engine.flush(fakes.PATIENCE)

    points = {
        metric.name: [(dict(point.attributes), getattr(point, "count", None)) for point in metric.data.data_points]
        for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    }
    judged = [(attributes["gen_ai.evaluation.name"], count) for attributes, count in points["ragspan.judge.duration"]]
    assert sorted(judged) == [("failed", 1), ("scored", 1)]
    assert {"ragspan.queue.size", "ragspan.queue.bytes", "ragspan.records"} <= set(points)
    provider.shutdown()
