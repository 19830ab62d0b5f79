"""The emitter that puts scores into LangSmith."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from ragspan.arguments import choice
from ragspan.config import variable
from ragspan.delivery import Annotation, DeliveryStatus, ScoreBackend, ScoreWriter
from ragspan.delivery.backend import Endpoint
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.records import SpanAnchor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragspan.delivery.writer import WriterOptions

_CLOUD = "https://api.smith.langchain.com"
_RUNS = choice("tracer", "spans")


class LangSmithFeedback(ScoreWriter):
    """Writes each score as feedback on the answer's run, with the explanation as its comment.

    Runs come to LangSmith in two ways. Its own tracer makes them of LangChain's runs, whose ids the records have: then no span
    is needed. Or spans are sent there by OTLP, and LangSmith makes a run of each, whose id follows from the span's: then this
    comes after the emitter that makes the span, `emitters=[OTelEmitter(), LangSmithFeedback()]`.

    Feedback has the metric's name as its key and the label as its value. To score a record again changes what was written. A
    metric that does not apply has none; one that failed has, with `failures=True`, the type of its error. The source is `model`
    where a language model judged, else `api`; its metadata has `record_id`, `judge`, `threshold`, `prompt_version`, `fallback`,
    `late`, `refusal`, `details` and `usage`, as far as there is something to say.

    Args:
        api_url: of LangSmith; None takes `LANGSMITH_ENDPOINT`, or LangSmith's cloud in the US.
        api_key: None takes `LANGSMITH_API_KEY`.
        project: where the runs are, by name; None takes `LANGSMITH_PROJECT`. Where it has no name LangSmith looks for the run
            in all projects, which not every deployment does.
        runs: what the runs are made of, by LangSmith's `tracer` or of `spans`; None takes the tracer's where
            `LANGSMITH_TRACING` is true. Records without a run of LangChain's are looked for by their spans.
        timeout: seconds, more than 0, that LangSmith may take to answer a request.
        options: those of every `ScoreWriter`: `capture_content`, `explanations`, `max_explanation_chars`, `failures`,
            `delivery`, `meter_provider`.

    Raises:
        ConfigurationError: the key is missing, or an argument or the environment has a value that is not allowed.
    """

    name = "langsmith"
    endpoint: Endpoint

    def __init__(
        self,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        project: str | None = None,
        runs: Literal["tracer", "spans"] | None = None,
        timeout: float = 10.0,
        **options: Unpack[WriterOptions],
    ) -> None:
        key = api_key or _setting("API_KEY")
        if key is None:
            raise ConfigurationError("a key for LangSmith is missing: set LANGSMITH_API_KEY, or give api_key")
        headers = {"x-api-key": key}
        if (workspace := _setting("WORKSPACE_ID")) is not None:
            headers["x-tenant-id"] = workspace
        name, url = ("LANGSMITH_ENDPOINT", _setting("ENDPOINT") or _CLOUD) if api_url is None else ("api_url", api_url)
        self.endpoint = Endpoint.at(name, url, headers=headers, timeout=timeout)
        _RUNS.or_none().check("runs", runs)
        is_traced = "true" in {_setting("TRACING"), _setting("TRACING_V2")}
        self._runs = runs or ("tracer" if is_traced else "spans")
        self.needs_span = self._runs == "spans"
        self._project = project or _setting("PROJECT")
        super().__init__(**options)

    def connect(self) -> ScoreBackend[Annotation]:
        from ragspan.delivery.http import HttpClient
        from ragspan_langsmith.backend import PARALLEL, LangSmithServer

        return LangSmithServer(HttpClient(self.endpoint, size=PARALLEL), project=self._project)

    def emit_with_status(self, scored: ScoredRecord) -> DeliveryStatus:
        """Take an answer's outcomes; the tracer's runs need no span."""
        run = self._traced_run(scored)
        if run is not None:
            scored = replace(scored, span=SpanAnchor(trace_id=run.int, span_id=run.int >> 64))
        return super().emit_with_status(scored)

    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[Annotation]:
        """An annotation of the answer's run for each score."""
        # LangSmith makes a span's id a run's by zeros before it.
        run = self._traced_run(scored) or UUID(int=span.span_id)
        return [replace(item, span_id=str(run)) for item in super().items_of(scored, span)]

    def _traced_run(self, scored: ScoredRecord) -> UUID | None:
        run_id = scored.record.run_id if self._runs == "tracer" else None
        try:
            return None if run_id is None else UUID(run_id)
        except ValueError:  # of a record that came as JSON
            return None


def _setting(name: str) -> str | None:
    """A variable of LangSmith's, under its present or its former name."""
    return variable(f"LANGSMITH_{name}") or variable(f"LANGCHAIN_{name}")
