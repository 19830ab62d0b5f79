import copy
import pickle
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan import ConfigurationError, MetricFailure, RagRecord, Score, ScoredRecord, ScoringEngine, SpanAnchor
from ragspan.delivery import DeliveryOptions
from ragspan.judges.base import ClaimVerdict
from ragspan.metrics import Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.testing import FakeJudge
from ragspan_mlflow import MLflowAssessments

AT_ONCE = DeliveryOptions(linger=0.0)


@pytest.fixture
def writer():
    """Makes emitters, and shuts them down."""
    made = []

    def writer(server, **given):
        made.append(MLflowAssessments(tracking_uri=server.url, **{"delivery": AT_ONCE, **given}))
        return made[-1]

    yield writer
    for emitter in made:
        emitter.shutdown(0)


def test_scores_arrive(mlflow, writer, make):
    emitter = writer(mlflow)

    emitter.emit(make.scored({"faithfulness": Score(value=0.9), "completeness": Score(value=0.4)}))

    assert emitter.flush(10)
    assert mlflow.values(make.trace(1)) == {"faithfulness": 0.9, "completeness": 0.4}
    assert emitter.stats().delivered == 2


def test_a_score_that_is_emitted_again_is_there_once(mlflow, writer, make):
    for emitter in (writer(mlflow), writer(mlflow)):
        emitter.emit(make.scored({"faithfulness": Score(value=0.9)}))
        assert emitter.flush(10)

    assert len(mlflow.assessments[make.trace(1)]) == 1


def test_scores_wait_for_a_server_that_is_away(closed_port, writer, make):
    emitter = writer(closed_port)
    emitter.emit(make.scored({"faithfulness": Score(value=0.9)}))
    assert not emitter.flush(0.1)

    closed_port.listen()

    assert emitter.flush(10)
    assert closed_port.values(make.trace(1)) == {"faithfulness": 0.9}


def test_scores_wait_for_their_trace(mlflow, writer, make):
    emitter = writer(mlflow)
    emitter.emit(make.scored({"faithfulness": Score(value=0.9)}, answer=9))
    assert not emitter.flush(0.1)

    mlflow.assessments[make.trace(9)] = []

    assert emitter.flush(10)
    assert mlflow.values(make.trace(9)) == {"faithfulness": 0.9}


def test_an_answer_that_is_not_sampled_is_counted(mlflow, writer, make):
    emitter = writer(mlflow)
    anchor = SpanAnchor(trace_id=1, span_id=2, trace_flags=0)
    record = make.scored({}).record

    emitter.emit(ScoredRecord(record=record, outcomes={"faithfulness": Score(value=0.9)}, span=anchor))

    assert emitter.flush(1)
    assert emitter.stats().dropped == {"no_span": 1}
    assert mlflow.calls == []


def test_spans_and_scores_of_an_engine_meet_in_mlflow(mlflow, writer):
    class Half:
        name = "half"

        async def score(self, record):
            return Score(value=0.5, threshold=0.6)

    emitter = writer(mlflow, experiment="support")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(emitter.span_exporter()))
    engine = ScoringEngine(metrics=[Half()], emitters=[OTelEmitter(tracer_provider=provider), emitter])

    engine.submit(RagRecord(question="Why?", contexts=["Because."], response="So.", record_id="r1"))

    assert engine.flush(timeout=20)
    ((assessment,),) = filter(None, mlflow.assessments.values())
    assert assessment["feedback"] == {"value": 0.5}
    assert assessment["metadata"]["ragspan.label"] == "fail"
    assert mlflow.spans[mlflow.experiments["support"]] == ["invoke_workflow answer"]
    engine.shutdown(timeout=5)
    provider.shutdown()


def test_what_an_engine_redacts_is_in_no_assessment(mlflow, writer):
    emitter = writer(mlflow, explanations=True)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(emitter.span_exporter()))
    engine = ScoringEngine(
        metrics=[Faithfulness(judge=FakeJudge(supported=[False]))],
        emitters=[OTelEmitter(tracer_provider=provider), emitter],
        redact=lambda text: text.replace("Anna", "[name]"),
    )

    engine.submit(RagRecord(question="Who is Anna?", contexts=["Anna."], response="Anna lives in Rome."))

    assert engine.flush(timeout=20)
    assert "[name] lives in Rome." in repr(mlflow.assessments)
    assert "Anna" not in repr(mlflow.assessments)
    engine.shutdown(timeout=5)
    provider.shutdown()


def test_an_emitter_can_go_to_another_process(mlflow, writer, make):
    given = {"token": "secret", "explanations": False, "failures": True, "delivery": AT_ONCE}
    emitter = pickle.loads(pickle.dumps(writer(mlflow, **given)))
    emitter.emit(make.scored({"faithfulness": Score(value=0.9, explanation="It quotes.")}))

    assert emitter.flush(10)
    assert mlflow.headers[-1]["Authorization"] == "Bearer secret"
    assert "rationale" not in mlflow.assessments[make.trace(1)][0]
    assert emitter._given == {**writer(mlflow, **given)._given}
    emitter.shutdown(0)


def test_a_copy_has_nothing_to_deliver(closed_port, writer, make):
    emitter = writer(closed_port)
    emitter.emit(make.scored({"faithfulness": Score(value=0.9)}))

    assert copy.copy(emitter).stats().offered == 0


def test_secrets_are_not_shown(mlflow, writer):
    assert "secret" not in repr(writer(mlflow, token="secret"))


@pytest.mark.parametrize("chars", [0, 8193, 1.5, True])
def test_explanations_have_a_bound(mlflow, chars):
    with pytest.raises(ConfigurationError, match="max_explanation_chars"):
        MLflowAssessments(tracking_uri=mlflow.url, max_explanation_chars=chars)


def test_an_emitter_without_a_server_is_a_mistake():
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        MLflowAssessments()


@pytest.mark.slow
def test_the_import_loads_no_http_client_and_no_sdk():
    heavy = ("mlflow", "requests", "opentelemetry.sdk", "opentelemetry.exporter")
    program = f"import sys, ragspan_mlflow\nprint([name for name in {heavy} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
QUOTING = Score(
    value=0.5,
    explanation="Zanzifer said so.",
    judge="overlap",
    evidence=(ClaimVerdict(index=0, supported=False, claim="Zanzifer said so."),),
)


@pytest.mark.parametrize(
    ("variables", "quotes", "rationale"),
    [
        ({}, False, "1 of 1 claims unsupported: sentence 1"),
        ({"RAGSPAN_EXPLANATIONS": "false", "RAGSPAN_CAPTURE_CONTENT": "true"}, False, None),
        ({"RAGSPAN_EXPLANATIONS": "true"}, True, "Zanzifer said so."),
        ({"RAGSPAN_CAPTURE_CONTENT": "true"}, True, "Zanzifer said so."),
        ({GENAI: "SPAN_ONLY"}, True, "Zanzifer said so."),
        ({GENAI: "EVENT_ONLY"}, False, "1 of 1 claims unsupported: sentence 1"),
    ],
)
def test_requests_quote_a_user_only_where_that_is_allowed(
    mlflow, writer, make, monkeypatch, variables, quotes, rationale
):
    for name in ("RAGSPAN_EXPLANATIONS", "RAGSPAN_CAPTURE_CONTENT", GENAI):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    emitter = writer(mlflow, failures=True)
    failure = MetricFailure(error_type="ValueError", message="Zanzifer")
    emitter.emit(make.scored({"faithfulness": QUOTING, "own": failure}))

    assert emitter.flush(10)
    written = mlflow.assessments[make.trace(1)]
    assert ("Zanzifer" in str(written)) is quotes
    assert [one.get("rationale") for one in written if one["assessment_name"] == "faithfulness"] == [rationale]
