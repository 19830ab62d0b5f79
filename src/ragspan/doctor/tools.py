"""The tools that have scores of their own: whether their servers answer, and what becomes of one record's scores there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragspan.addresses import cause_of, shown_url
from ragspan.application import own_exporters
from ragspan.counted import counted
from ragspan.defaults import needs_span
from ragspan.doctor import Finding, finding, misuse
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.emitter_protocols import emitter_class
from ragspan.tools import ScoreWriter
from ragspan.tools.http import session_for
from ragspan.tools.spans import RetryingSpanExporter

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter


def writes_to_spans(name: str) -> bool:
    """Whether the emitter of this name writes to answers' spans, so that these are made for it."""
    try:
        return name not in {"otel", "console"} and needs_span(emitter_class(name))
    except ConfigurationError:  # which its own check reports
        return False


def export_to_tools(
    writers: Sequence[ScoreWriter], provider: TracerProvider
) -> tuple[list[SpanExporter], list[Finding]]:
    """Send spans to the writers' own servers, as an application does that names no exporter.

    Returns:
        The exporters, and what is missing where a writer has none of its own.
    """
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    try:
        made = own_exporters(writers)
    except ConfigurationError as error:
        return [], [misuse("endpoint", error)]
    for exporter in made:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return made, []


def close(exporters: Sequence[SpanExporter], seconds: float) -> None:
    """Give up what these exporters could not send within `seconds` each: their provider would wait for longer."""
    for exporter in exporters:
        if isinstance(exporter, RetryingSpanExporter):
            exporter.shutdown(seconds * 1000)


def written(writer: ScoreWriter, complaints: Sequence[str], seconds: float) -> list[Finding]:
    """Whether the tool's server answers, within `seconds`, and whether it has accepted the record's scores."""
    name, stats = _name(writer), writer.stats()
    lost = {**stats.rejected, **stats.dropped}
    if stats.delivered and not lost and not stats.waiting:
        return [finding("record", "tool_took_scores", "ok", f"{name} accepted {counted(stats.delivered, 'score')}")]
    reached = _reached(writer, seconds)
    if reached.state == "failed":
        return [reached]
    if lost:
        found = f"{name} did not accept {counted(sum(lost.values()), 'score')}: {', '.join(lost)}"
        return [reached, finding("record", "tool_refused_scores", "failed", found)]
    last = f": {complaints[-1]}" if complaints else ""
    return [
        reached,
        finding("record", "tool_refused_scores", "failed", f"{name} did not accept the scores in time{last}"),
    ]


def _reached(writer: ScoreWriter, seconds: float) -> Finding:
    """Whether the tool's server answers at all, whatever it says."""
    with session_for(writer.client.endpoint) as session:
        try:
            reply = session.request("GET", writer.client.endpoint.url, timeout=seconds)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is why the server cannot be used
            cause = cause_of(error) or type(error).__name__
            return finding("endpoint", "tool_unreachable", "failed", f"{_name(writer)} cannot be reached: {cause}")
    return finding("endpoint", "tool_answers", "ok", f"{_name(writer)} answers (HTTP {reply.status_code})")


def _name(writer: ScoreWriter) -> str:
    return f"{writer.name} at {shown_url(writer.client.endpoint.url)}"
