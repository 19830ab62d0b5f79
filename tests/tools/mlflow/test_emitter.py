"""Scores on their way to an MLflow that is there, not there, slow, or that refuses some of them."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from writer_law import PATIENCE, WriterLaw

from ragspan import RagRecord, Score, ScoringEngine
from ragspan.telemetry import OTelEmitter
from ragspan.tools import DeliveryOptions


class TestTrouble(WriterLaw):
    pass


def test_spans_and_scores_of_an_engine_meet_in_mlflow(mlflow, make_writer):
    class Half:
        name = "half"

        async def score(self, record):
            return Score(value=0.5, threshold=0.6)

    writer = make_writer(experiment="support", delivery=DeliveryOptions(linger=0.0))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(writer.span_exporter()))
    engine = ScoringEngine(metrics=[Half()], emitters=[OTelEmitter(tracer_provider=provider), writer])

    engine.submit(RagRecord(question="Why?", contexts=["Because."], response="So.", record_id="r1"))

    assert engine.flush(timeout=PATIENCE)
    ((assessment,),) = filter(None, mlflow.assessments.values())
    assert assessment["feedback"] == {"value": "fail"}
    assert assessment["metadata"]["ragspan.label"] == "fail"
    assert mlflow.spans[mlflow.experiments["support"]] == ["invoke_workflow answer"]
    engine.shutdown(timeout=5)
    provider.shutdown()
