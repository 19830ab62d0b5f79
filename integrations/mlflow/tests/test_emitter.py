import pickle
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan import RagRecord, Score, ScoringEngine
from ragspan.delivery import DeliveryOptions
from ragspan.telemetry import OTelEmitter
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


def test_an_emitter_can_go_to_another_process(mlflow, writer, make):
    given = {"token": "secret", "explanations": False, "failures": True, "delivery": AT_ONCE}
    emitter = pickle.loads(pickle.dumps(writer(mlflow, **given)))
    emitter.emit(make.scored({"faithfulness": Score(value=0.9, explanation="It quotes.")}))

    assert emitter.flush(10)
    assert mlflow.headers[-1]["Authorization"] == "Bearer secret"
    assert "rationale" not in mlflow.assessments[make.trace(1)][0]
    assert emitter.delivery == AT_ONCE
    emitter.shutdown(0)


@pytest.mark.slow
def test_the_import_loads_no_http_client_and_no_sdk():
    heavy = ("mlflow", "requests", "opentelemetry.sdk", "opentelemetry.exporter")
    program = f"import sys, ragspan_mlflow\nprint([name for name in {heavy} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"
