"""Runs the demo: an application with tracing, the frameworks, and the output."""

from __future__ import annotations

import importlib.metadata
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from rich.console import Console
from rich.text import Text

from ragspan.arguments import one_of
from ragspan.config import Settings
from ragspan.datasets.back_fill import SpanCount
from ragspan.defaults import emitters_from, engine_from, set_default_engine
from ragspan.demo import SCRIPT, AnsweringFramework, Asked
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import NotApplicable, Outcome, Score, ScoredRecord
from ragspan.telemetry.console import outcome_line, shortened
from ragspan.telemetry.spans import answer_name, step_name
from ragspan.testing import RecordingEmitter

_GROUP = "ragspan_demo"
_FLUSH_SECONDS = 120.0
_DRAWN = 4  # answers in the picture: one of each kind


def run_demo(
    console: Console, *, framework: str | None = None, otlp: str | None = None, picture: Path | None = None
) -> bool:
    """Answer every question and show the answers with their scores; False if spans could not be sent.

    Raises:
        ConfigurationError: an argument or a `RAGSPAN_*` variable is wrong, or something is not installed.
    """
    settings = Settings.from_environment()
    chosen = _chosen_frameworks(framework)
    provider = TracerProvider(resource=Resource.create({"service.name": "ragspan-demo"}))
    count = SpanCount()
    if otlp:
        provider.add_span_processor(BatchSpanProcessor(count.sent_by(_otlp_exporter(otlp))))
    trace.set_tracer_provider(provider)
    answers, explained = _answers(chosen, settings), [*legend(settings.judge)]
    for line in [line for answer in answers for line in answer] + explained:
        console.print(line, no_wrap=True, overflow="ellipsis")
    if picture is not None:
        drawn = [line for answer in answers[:_DRAWN] for line in answer] + explained
        picture.write_text(draw(drawn), encoding="utf-8")
    return _tell_next(console, otlp, count, provider)


def _chosen_frameworks(name: str | None) -> dict[str, importlib.metadata.EntryPoint]:
    installed = {point.name: point for point in importlib.metadata.entry_points(group=_GROUP)}
    if not installed:
        raise ConfigurationError(
            "no framework is installed that could answer: pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
        )
    one_of(*sorted(installed)).or_none().check("--framework", name)
    return {key: installed[key] for key in ([name] if name else sorted(installed))}


def _otlp_exporter(url: str) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError("--otlp needs the OTLP exporter: pip install 'ragspan[otlp]'") from error
    endpoint = url.rstrip("/")
    return OTLPSpanExporter(endpoint=endpoint if endpoint.endswith("/v1/traces") else f"{endpoint}/v1/traces")


def _answers(chosen: Mapping[str, importlib.metadata.EntryPoint], settings: Settings) -> list[list[Text]]:
    """Ask as an application does, in a span for each request; the lines about each answer."""
    emitter = RecordingEmitter(score_wait=settings.score_wait)
    engine = engine_from(settings, emitters=[*emitters_from(settings), emitter])
    set_default_engine(engine)
    frameworks: dict[str, AnsweringFramework] = {name: point.load()() for name, point in chosen.items()}
    tracer = trace.get_tracer("ragspan.demo")
    asked = [one for one in SCRIPT if one.framework in frameworks]
    got = []
    for one in asked:
        with tracer.start_as_current_span(one.title) as span:
            got.append((span.get_span_context().trace_id, frameworks[one.framework].answer(one)))
    engine.flush(_FLUSH_SECONDS)
    scored: dict[int, list[ScoredRecord]] = defaultdict(list)
    for part in emitter.scored:
        if part.record.parent is not None:
            scored[part.record.parent.trace_id].append(part)
    return [
        [*shown_answer(number, one, response, scored[trace_id]), Text()]
        for number, (one, (trace_id, response)) in enumerate(zip(asked, got, strict=True), start=1)
    ]


def _tell_next(console: Console, otlp: str | None, count: SpanCount, provider: TracerProvider) -> bool:
    if not otlp:
        console.print("The same as spans: ragspan demo --otlp http://localhost:4318", soft_wrap=True)
        return True
    provider.force_flush()
    if count.failed or not count.sent:
        console.print(
            f"{count.failed} spans could not be sent to {otlp}: is something listening there?", soft_wrap=True
        )
        return False
    console.print(f"Sent {count.sent} spans to {otlp}; look for the service ragspan-demo.", soft_wrap=True)
    return True


def shown_answer(number: int, asked: Asked, got: str, scored: Sequence[ScoredRecord]) -> Iterator[Text]:
    """The lines about one answer.

    Args:
        number: of the answer in the script.
        asked: what was asked.
        got: the caller's answer, which may be shorter than the model's.
        scored: the record with its outcomes, then with the late ones.
    """
    record = scored[0].record
    outcomes = {metric: outcome for part in scored for metric, outcome in part.outcomes.items()}
    yield Text(f"{number} {asked.title}", style="bold")
    yield Text(f"  {asked.question}")
    yield Text(f"  “{got}”", style="italic")
    spans = [answer_name(record), *map(step_name, sorted(record.steps, key=lambda step: step.started_ns))]
    milliseconds = (record.ended_ns - record.started_ns) / 1e6
    yield Text(f"  {' > '.join(shortened(span) for span in spans)}  {milliseconds:.0f} ms", style="cyan")
    reasons = {outcome.reason if isinstance(outcome, NotApplicable) else None for outcome in outcomes.values()}
    if len(outcomes) > 1 and len(reasons) == 1 and None not in reasons:
        yield Text(f"  no metric applies: {reasons.pop()}", style="dim")
        return
    for metric, outcome in outcomes.items():
        explanation = outcome.explanation if isinstance(outcome, Score) else None
        yield Text("  ").append_text(outcome_line(metric, outcome, explanation))
    if any(part.refusal for part in scored):
        yield Text("  ^ a refusal, and marked as one on its span", style="yellow")
    if asked.is_wrong and _passes(outcomes):
        yield Text("  ^ wrong: the embedded judge does not see it. An LLM judge may.", style="yellow")


def _passes(outcomes: Mapping[str, Outcome]) -> bool:
    faithfulness = outcomes.get("faithfulness")
    return isinstance(faithfulness, Score) and faithfulness.label == "pass" and faithfulness.judge == "overlap"


def legend(judge: str) -> Iterator[Text]:
    """The meaning of the lines."""
    yield Text(f"Scores by the {judge} judge, from 0 to 1; pass or fail by a threshold:")
    yield Text("context_adherence    does the answer keep to its contexts?", style="dim")
    yield Text("completeness         does it say what the contexts say about the question?", style="dim")
    yield Text("context_utilization  did the useful contexts come first?", style="dim")
    yield Text("faithfulness         the share of its claims that the contexts support", style="dim")


def draw(lines: Sequence[Text]) -> str:
    """The lines as an SVG without external resources."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ellipsis")
    return console.export_svg(title="ragspan demo", code_format=_SVG, unique_id="ragspan")


_SVG = """<svg class="rich-terminal" xml:space="preserve" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
