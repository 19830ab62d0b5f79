from __future__ import annotations

import contextvars

import pytest
from opentelemetry import trace

from ragspan.exceptions import JudgeError
from ragspan.outcomes import MetricFailure, Score


def raise_(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("kind", ["CallingMetric", "ThreadMetric"])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no")])
def test_what_a_metric_raises_is_its_failure_and_no_others(fakes, make_engine, caplog, kind: str, error: BaseException):
    """The worker goes on, and so do the other metrics."""
    bad = getattr(fakes, kind)(lambda _: raise_(error), "bad")
    emitter = fakes.ListEmitter()
    engine = make_engine(bad, fakes.ConstantMetric(), emitters=[emitter])
    fakes.score(engine, times=3)

    assert [scored.outcomes["bad"].error_type for scored in emitter.scored] == [type(error).__name__] * 3
    assert [scored.outcomes["constant"] for scored in emitter.scored] == [Score(value=1.0)] * 3
    assert engine.stats().errors == {"metric": 3}
    assert caplog.messages == [f"metric bad failed with {type(error).__name__}"]


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (401, "HTTP 401: no such key (check it)", "Error: HTTP 401: no such key (check it); ragspan doctor shows why"),
        (503, "HTTP 503: 'a text'", "Error (HTTP 503); ragspan doctor shows why"),
        (None, "Connection error. (refused)", "Error: Connection error. (refused); ragspan doctor shows why"),
    ],
)
def test_the_log_has_a_judges_words_where_they_can_quote_no_text(fakes, make_engine, caplog, status, message, said):
    error = JudgeError("Error", message, outage=True, status=status)
    fakes.score(make_engine(fakes.CallingMetric(lambda _: raise_(error), "bad")))

    assert caplog.messages == [f"metric bad failed with {said}"]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (JudgeError("RateLimitError", "no"), MetricFailure(error_type="RateLimitError", message="no")),
        (
            JudgeError("RateLimitError", "no", outage=True),
            MetricFailure(error_type="RateLimitError", message="no", outage=True),
        ),
        (type("E" * 200, (ValueError,), {})("x" * 10_000), MetricFailure(error_type="E" * 100, message="x" * 500)),
    ],
    ids=["named by itself", "of a service that is out", "that is long"],
)
def test_the_failure_tells_of_an_error(score_one, fakes, error: Exception, failure: MetricFailure):
    assert score_one(fakes.CallingMetric(lambda _: raise_(error))).outcomes["calling"] == failure


def test_an_answer_that_is_no_outcome_is_a_failure(score_one, fakes):
    words = "score() returned a float, not a Score, NotApplicable or MetricFailure"

    assert score_one(fakes.CallingMetric(lambda _: 0.5)).outcomes == {
        "calling": MetricFailure(error_type="invalid_outcome", message=words)
    }


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
        fakes.score(engine)
        fakes.score(engine)

    assert seen == ["unset", False] * 2


@pytest.mark.parametrize("kind", ["HangingMetric", "BlockingMetric"])
def test_nobody_waits_for_a_metric_longer_than_its_timeout(fakes, score_one, kind: str):
    metric = getattr(fakes, kind)()

    assert score_one(metric, metric_timeout=0.01).outcomes == {
        metric.name: MetricFailure(error_type="timeout", message="no outcome within 0.01 s")
    }
    assert kind == "BlockingMetric" or metric.was_cancelled.wait(fakes.PATIENCE)
