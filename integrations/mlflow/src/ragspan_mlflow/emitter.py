"""The emitter that makes scores MLflow assessments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragspan.config import CaptureContent
from ragspan.delivery import DeliveryOptions, Destination, ScoreWriter
from ragspan.outcomes import ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry.content import ContentPolicy
from ragspan_mlflow.feedback import Feedback, feedback_of
from ragspan_mlflow.server import TrackingServer

if TYPE_CHECKING:
    from ragspan_mlflow.exporting import MLflowSpanExporter

_LANES = 4


class MLflowAssessments(ScoreWriter[Feedback]):
    """Writes each score as feedback on the answer's span in MLflow: a column of the trace table, and a filter.

    It stands after the emitter that makes the span: `ScoringEngine(emitters=[OTelEmitter(), MLflowAssessments()])`, and the
    spans have to reach the same server, through `span_exporter` for instance. Scores wait for their spans to arrive. A
    score that is delivered again, after a lost answer or by a second run of the same records, changes what is there.

    A feedback has the metric's name and value, the explanation as its rationale, the judge as its source (`LLM_JUDGE`, or
    `CODE` where no language model judged), and in its metadata `ragspan.record_id`, `.label`, `.threshold`,
    `.prompt_version` and `.fallback`, and what the judge cost. What a person has corrected in MLflow stays corrected.

    Args:
        tracking_uri: an MLflow server with an SQL store, `http://host:port`; None takes `MLFLOW_TRACKING_URI`. Credentials
            are those of MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `_USERNAME` and `_PASSWORD`.
        experiment: where `span_exporter` sends spans to, a name or an id, as `MLflowSpanExporter` takes it. Scores go to
            wherever the trace is.
        token: a bearer token, in place of the environment's.
        capture_content: True says that users' texts may stand there, so that explanations may quote them. None asks the
            environment, as `OTelEmitter` does.
        explanations: True writes the judges' explanations as they are, which quote users' texts, and False writes none. None
            asks `RAGSPAN_EXPLANATIONS`, and else writes quotes only where the environment captures content, and elsewhere
            counts and places.
        max_explanation_chars: where they are cut, 1 to 8192.
        failures: also write metrics that failed, as feedback with an error: the type, never a message.
        timeout: seconds, more than 0, that a request may wait for a sign of life of the server.
        delivery: how many scores may wait, and for how long.

    Raises:
        ConfigurationError: no server is named, or an argument or the environment has a value that is not allowed.
    """

    name = "mlflow"

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str | int | None = None,
        token: str | None = None,
        capture_content: CaptureContent | None = None,
        explanations: bool | None = None,
        max_explanation_chars: int = 1000,
        failures: bool = False,
        timeout: float = 10.0,
        delivery: DeliveryOptions | None = None,
    ) -> None:
        self._given: dict[str, Any] = {
            "tracking_uri": tracking_uri,
            "experiment": experiment,
            "token": token,
            "capture_content": capture_content,
            "explanations": explanations,
            "max_explanation_chars": max_explanation_chars,
            "failures": failures,
            "timeout": timeout,
            "delivery": delivery,
        }
        self._server = TrackingServer.from_environment(tracking_uri, token=token, timeout=timeout)
        self._content = ContentPolicy(
            capture_content=capture_content,
            explanations=explanations,
            max_explanation_chars=max_explanation_chars,
        )
        self._failures = failures
        super().__init__(delivery)

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> MLflowAssessments:
        """The emitter for the server at this address, for `ragspan.configure(mlflow=address)`."""
        return cls(tracking_uri=address, capture_content=capture_content)

    def __reduce__(self) -> tuple[Callable[[], MLflowAssessments], tuple[()]]:
        """An emitter for another process: the same arguments, with nothing to deliver."""
        return partial(MLflowAssessments, **self._given), ()

    def span_exporter(self) -> MLflowSpanExporter:
        """An exporter that brings spans to the same server, into `experiment`."""
        from ragspan_mlflow.exporting import MLflowSpanExporter

        return MLflowSpanExporter(
            **{name: self._given[name] for name in ("tracking_uri", "experiment", "token", "timeout")}
        )

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Feedback]:
        """The feedback for these outcomes; none for a metric that does not apply."""
        return list(feedback_of(scored, span, content=self._content, failures=self._failures))

    def connect(self) -> Destination[Feedback]:
        """A connection to the server."""
        from ragspan_mlflow.connection import Connection
        from ragspan_mlflow.destination import AssessmentsDestination

        return AssessmentsDestination(Connection(self._server, size=_LANES), lanes=_LANES)
