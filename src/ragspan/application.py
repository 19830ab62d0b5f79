"""Sets ragspan up in an application with one call, `ragspan.configure()`: it makes what the application does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opentelemetry import _logs, trace
from opentelemetry import metrics as otel_metrics
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from ragspan.addresses import shown_url
from ragspan.arguments import TEXT, Rule
from ragspan.config import OF_RAGSPAN_RUN, CaptureContent, Settings, UnknownContextsRule, settings_with, variable
from ragspan.defaults import alerts_from, emitter_from, engine_from, needs_span, set_default_sink, sink_from, with_spans
from ragspan.engine import Budget, ScoringEngine, ShutdownReport
from ragspan.engine.redaction import RedactOption
from ragspan.exceptions import ConfigurationError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.metrics import Metric
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.outcomes import each_judge
from ragspan.process import in_use
from ragspan.records import RecordSink
from ragspan.telemetry import Emitter, OTelEmitter, providers
from ragspan.telemetry.console import ConsoleEmitter
from ragspan.telemetry.emitter_protocols import emitter_class
from ragspan.throttled_log import log_line
from ragspan.tools import ScoreWriter
from ragspan.tools.alerts import OnAlert

_LIST = Rule(
    "a list of names and objects",
    lambda value: value is None or (isinstance(value, Iterable) and not isinstance(value, (str, bytes))),
)


@dataclass(frozen=True, kw_only=True)
class Configured:
    """The result of `configure`."""

    engine: ScoringEngine | None = field(repr=False)
    """The engine that scores; None if `RAGSPAN_SINK` sends records to a fleet."""
    sink: Any
    """Takes the handlers' records: the engine, or the fleet's sink."""
    line: str
    """What is scored, by whom, and where the scores go."""

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every answer so far is scored and exported; False if some may be left after `timeout` seconds."""
        return bool(self.sink.flush(timeout))

    def shutdown(self, timeout: float = 10.0) -> ShutdownReport:
        """Stop capturing, score what is left within `timeout` seconds, and close everything but the providers.

        The providers end with the process, because the application may use them, too.
        """
        with in_use.setting_up:
            if in_use.configured is self:
                in_use.configured = None
                _capture_with(None)
                set_default_sink(None)
        report: ShutdownReport = self.sink.shutdown(timeout)
        return report


def configure(
    *,
    judge: JudgeChoice | None = None,
    metrics: Iterable[str | Metric] | None = None,
    emitters: Iterable[str | Emitter] | None = None,
    capture_content: CaptureContent | None = None,
    sample_rate: float | None = None,
    judge_share: float | None = None,
    judge_when: str | None = None,
    judge_polls: int | None = None,
    redact: RedactOption = None,
    unknown_contexts: UnknownContextsRule | None = None,
    budget: Budget | None = None,
    phoenix: str | None = None,
    mlflow: str | None = None,
    on_alert: OnAlert | None = None,
) -> Configured:
    """Score the answers of every LangChain and LlamaIndex program in this process.

    Call it once at the start of the program, after the application's own OpenTelemetry set-up if it has one:

        ragspan.configure()

    If no tracer provider is set, it sets one that exports as the `OTEL_*` variables say. If these name no exporter, and no
    backend is given, each answer is printed (the emitter `console`). For each argument that is not given, the `RAGSPAN_*`
    variable counts. A second call replaces the first, whose engine scores what it has and is shut down. Handlers that the
    application has made keep their engine. What is scored, by whom, and where the scores go is one line of the logger `ragspan`, at
    INFO.

    Args:
        judge: `"overlap"`, a name such as `"anthropic:claude-haiku-4-5"`, or a judge; a list of several is a `Jury`.
        metrics: names and metrics.
        emitters: names, such as `"otel"`, `"console"` and `"phoenix"`, and emitters.
        capture_content: write questions, contexts and responses on spans and on the console.
        sample_rate: the share of answers that are scored, 0..1.
        judge_share: the share of the answers that the judge is asked about, above 0, up to 1; the embedded judge reads all.
        judge_when: which answers are judged, such as `"tag=prod and latency>2s; faithfulness: 0.1"`; see `ScoringEngine`.
        judge_polls: votes and ratings that adherence and completeness ask an LLM judge for, by default three.
        redact: a function from text to text, for all texts before judges, emitters and sinks see them. If it fails, the record is
            dropped.
        unknown_contexts: `"prompt"` scores answers without known documents by the text of their prompts; `"skip"` does not.
        budget: what judges may spend, in place of the `RAGSPAN_BUDGET_*` variables.
        phoenix: the address of a Phoenix, such as `"http://localhost:6006"`: spans and annotations go there.
        mlflow: the address of an MLflow server: traces and assessments go there.
        on_alert: a webhook's address, or a function that gets an `Alert` when more or fewer answers fail than usual.

    Raises:
        ConfigurationError: an argument or a variable has a value that is not allowed, or a package is not installed. The
            previous configuration stays.
    """
    _LIST.check("metrics", metrics)
    _LIST.check("emitters", emitters)
    settings = settings_with(
        judge=judge,
        capture_content=capture_content,
        sample_rate=sample_rate,
        judge_share=judge_share,
        judge_polls=judge_polls,
        redact=redact,
        unknown_contexts=unknown_contexts,
    )
    given: dict[str, Any] = {"budget": budget, "judge_when": judge_when}
    options = {name: value for name, value in given.items() if value is not None}
    TEXT.or_none().check("phoenix", phoenix)
    TEXT.or_none().check("mlflow", mlflow)
    with in_use.setting_up:
        backends: list[Any] = [
            emitter_class(name)(**{argument: address}, capture_content=settings.capture_content)
            for name, argument, address in (("phoenix", "base_url", phoenix), ("mlflow", "tracking_uri", mlflow))
            if address is not None
        ]
        is_ours = settings.enabled and not _application_has_provider()
        exporters = providers.exporters("traces") if is_ours else []
        names = [entry.name.removeprefix("ragspan_") for entry in _entries()]
        answers = f"answers of {', '.join(names) or 'ragspan.capture'}"
        if settings.enabled and settings.sink is not None:
            line = f"{answers} go to {shown_url(settings.sink)}, where workers score them"
            configured = Configured(engine=None, sink=sink_from(settings), line=line)
        else:
            wanted = metrics_from(settings, metrics, judge=judge) if settings.enabled else []
            chosen: list[Emitter] = []
            if settings.enabled:
                chosen = with_spans([*_emitters(emitters, settings, backends), *backends], settings)
                exporters += own_exporters(chosen, backends)
            told = alerts_from(settings, on_alert)
            engine = engine_from(settings, emitters=[*chosen, *told], metrics=wanted, **options)
            line = start_line(settings, answers, wanted, chosen)
            configured = Configured(engine=engine, sink=engine, line=line)
        previous, in_use.configured = in_use.configured, configured
        set_default_sink(configured.sink)
        _capture_with(configured.sink)
        if previous is not None and previous.sink is not configured.sink:
            previous.sink.shutdown(settings.exit_timeout)  # its spans still go to its exporters
        if settings.enabled:
            try:
                in_use.only(_Providers).set_up(exporters)
            except (RuntimeError, ValueError) as error:  # no thread is left, or a limit of OTEL_* is wrong
                log_line(logging.WARNING, "OpenTelemetry cannot be set up, so no span is exported: %s", str(error))
    if variable(OF_RAGSPAN_RUN) is None:  # which has said it for all its processes
        log_line(logging.INFO, "%s", configured.line)
    return configured


# Emitters and exporters


def _emitters(
    chosen: Iterable[str | Emitter] | None, settings: Settings, backends: Sequence[Emitter]
) -> Iterator[Emitter]:
    """The chosen emitters, else the environment's, else `otel` if spans can be exported and `console` if not.

    Where the application has metrics alone, such as Prometheus', `otel` measures beside `console`. Where a variable switches
    spans off, nothing is printed in their place.
    """
    if chosen is None and variable("RAGSPAN_EMITTERS"):
        chosen = settings.emitters
    if chosen is None:
        is_exported = backends or providers.exporter_names("traces") or _application_has_provider()
        has_metrics = _is_set(otel_metrics.get_meter_provider()) or providers.exporter_names("metrics")
        is_off = providers.why_no_spans() is not None
        chosen = ["otel"] if is_exported or is_off else ["otel", "console"] if has_metrics else ["console"]
    return (emitter_from(one, settings) if isinstance(one, str) else one for one in chosen)


def _is_set(provider: object) -> bool:
    """Whether this is the provider of an SDK, not the API's default."""
    return callable(getattr(provider, "force_flush", None))


def _application_has_provider() -> bool:
    provider = trace.get_tracer_provider()
    return _is_set(provider) and provider is not in_use.only(_Providers).tracer


def own_exporters(emitters: Sequence[Any], backends: Sequence[Any] = ()) -> list[SpanExporter]:
    """New exporters of the backends, and of other writers where the spans that they need would go nowhere else.

    Raises:
        ConfigurationError: a writer has none, and nothing else exports; the message names the variables for one.
    """
    found: list[SpanExporter] = [backend.span_exporter() for backend in backends]
    makes_own = any(isinstance(emitter, OTelEmitter) and emitter.tracer_provider is not None for emitter in emitters)
    if makes_own or providers.exporter_names("traces") or _application_has_provider():
        return found
    for writer in emitters:
        if needs_span(writer) and writer not in backends and hasattr(writer, "span_exporter"):
            found.append(writer.span_exporter())
        elif needs_span(writer) and not found:
            name = getattr(writer, "name", type(writer).__name__)
            raise ConfigurationError(
                f"{name} writes to the spans of answers, but nothing exports spans: set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT "
                f"and OTEL_EXPORTER_OTLP_TRACES_HEADERS to where {name} takes them (docs/tracing-tools.md)"
            )
    return found


class _Providers(SpanProcessor):
    """The providers that ragspan has set in this process, and the processor of their spans.

    It sends spans to the exporters of the latest configuration, because a global provider can be set only once.
    """

    def __init__(self) -> None:
        self.tracer: TracerProvider | None = None
        self._extended: TracerProvider | None = None
        """The application's, if backends that it has not set up get its spans, too."""
        self._batches = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]

    def set_up(self, exporters: Sequence[SpanExporter]) -> None:
        """Set the providers that the application does not have; from now on spans go to these exporters."""
        provider = trace.get_tracer_provider()
        if exporters and not _is_set(provider):
            self.tracer = TracerProvider()
            self.tracer.add_span_processor(self)
            trace.set_tracer_provider(self.tracer)
        elif exporters and isinstance(provider, TracerProvider) and provider not in {self.tracer, self._extended}:
            self._extended = provider
            provider.add_span_processor(self)
        batches = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]
        for exporter in exporters:
            batches.add_span_processor(BatchSpanProcessor(exporter))
        previous, self._batches = self._batches, batches
        previous.shutdown()
        if providers.exporter_names("metrics") and not _is_set(otel_metrics.get_meter_provider()):
            otel_metrics.set_meter_provider(providers.meter_provider(shutdown_on_exit=True))
        if providers.exporter_names("logs") and not _is_set(_logs.get_logger_provider()):
            _logs.set_logger_provider(providers.logger_provider(shutdown_on_exit=True))

    def on_end(self, span: ReadableSpan) -> None:
        self._batches.on_end(span)

    def shutdown(self) -> None:
        self._batches.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._batches.force_flush(timeout_millis)


# Integrations


def frameworks() -> list[str]:
    """The modules of the frameworks whose integrations are installed."""
    return [entry.load().framework for entry in _entries()]


def _capture_with(sink: RecordSink | None) -> None:
    """Make the handlers of all installed integrations submit to this sink; None removes them."""
    for entry in _entries():
        instrumentor = entry.load()()
        if instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.uninstrument()
        if sink is not None:
            instrumentor.instrument(sink=sink)


def _entries() -> Iterator[EntryPoint]:
    return (entry for entry in entry_points(group="opentelemetry_instrumentor") if entry.name.startswith("ragspan_"))


# What is scored, by whom, and where the scores go: the one line that `configure()` logs and `ragspan run` prints


def start_line(settings: Settings, answers: str, metrics: Sequence[Metric], emitters: Sequence[Emitter]) -> str:
    """What an engine with these metrics and emitters does."""
    if not settings.enabled:
        return "RAGSPAN_ENABLED is false: nothing is captured, and nothing is scored"
    if not metrics:
        return f"{answers} are traced and not scored: there are no metrics"
    share = "" if settings.sample_rate == 1 else f"{settings.sample_rate:.3g} of the "
    asked = [getattr(metric, "judge", None) or getattr(metric, "verifier", None) for metric in metrics]
    by = ", ".join(each_judge(getattr(one, "name", None) for one in asked))
    if by and settings.judge_share is not None:
        by = f"overlap, {settings.judge_share:.3g} of them also by {by}"
    where = ", ".join(dict.fromkeys(place for emitter in emitters for place in _places(emitter)))
    names = ", ".join(metric.name for metric in metrics)
    scored = f"{share}{answers} are scored{by and f' by {by}'} ({names})"
    return f"{scored}; scores go {f'to {where}' if where else 'nowhere'}"


def _places(emitter: Emitter) -> Iterator[str]:
    """Where scores of this emitter are seen."""
    if isinstance(emitter, ConsoleEmitter):
        yield "the console"
    elif isinstance(emitter, ScoreWriter):
        yield f"{emitter.name} at {shown_url(emitter.client.endpoint.url)}"
    elif not isinstance(emitter, OTelEmitter):
        yield type(emitter).__name__
    elif providers.exporter_names("traces"):
        for name in providers.exporter_names("traces"):
            address = providers.endpoint("traces") if "otlp" in name else None
            yield shown_url(address) if address else f"the exporter {name}"
    elif _is_set(trace.get_tracer_provider()):
        yield "the application's tracer provider"
