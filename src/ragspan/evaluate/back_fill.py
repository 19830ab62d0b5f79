"""Sends the scores of answers to the spans that the answers had when they were given.

The exporters are those of the environment, as in the helper process, and the emitters those of `RAGSPAN_EMITTERS`. A row
without a valid span sends nothing: its scores would have no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any

from ragspan.config import Settings
from ragspan.defaults import emitter_from
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import AnswerHandle, EmitHandle, Emitter
from ragspan.telemetry.environment import (
    Signal,
    exporter_is_configured,
    make_exporter,
    providers_from_environment,
)

_TIMEOUT_MS = 30_000
_OTEL = "otel"  # what `RAGSPAN_EMITTERS` calls OpenTelemetry


class OnlyTraced:
    """An emitter that gets only the records that belong to a span."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.score_wait = emitter.score_wait
        self.shutdown = emitter.shutdown
        self.is_flushed = True
        """Whether the last flush found that everything was sent."""

    def start(self, record: RagRecord) -> AnswerHandle:
        if record.parent is None:
            return EmitHandle(lambda _: None)
        # The record's parent is the answer's span, whoever else would make another.
        return EmitHandle(self._emitter.start(record).finish, span=record.parent)

    def flush(self, timeout: float) -> bool:
        self.is_flushed = self._emitter.flush(timeout)
        return self.is_flushed


class BackFill:
    """The emitters of a back-fill, and whether what they sent has arrived.

    Args:
        settings: which emitters there are, and how the one to OpenTelemetry writes.
        tool: write to it by its own emitter, in place of the settings' emitters.

    Raises:
        ConfigurationError: there is nowhere to send scores to, or an exporter or emitter is not installed.
    """

    def __init__(self, settings: Settings, *, tool: str | None = None) -> None:
        self.unsent = 0
        """Spans that an exporter could not send, or is sending."""
        self.tool = tool
        names = [name for name in settings.emitters if name != _OTEL or exporter_is_configured()]
        names = [tool] if tool else names
        if not names:
            raise ConfigurationError(
                "--to-trace sends scores where your spans are, but no exporter is configured: "
                "set OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_TRACES_EXPORTER"
            )
        self._providers = providers_from_environment(make=self._make) if _OTEL in names else None
        settings = replace(settings, spans="scores")
        self.emitters = [OnlyTraced(emitter_from(name, settings, self._providers)) for name in names]

    @cached_property
    def is_delivered(self) -> bool:
        """Send what is left and shut the exporters down; whether everything went out, as far as they report.

        Read it after the engine's end, which has flushed the emitters.
        """
        flushed = [emitter.is_flushed for emitter in self.emitters]
        if self._providers is not None:
            flushed.append(self._providers.tracer_provider.force_flush(_TIMEOUT_MS))
            self._providers.shutdown()
        return all(flushed) and not self.unsent

    def _make(self, kind: Signal, entry: EntryPoint) -> Any:
        from opentelemetry.sdk.trace.export import SpanExportResult

        exporter = make_exporter(kind, entry)
        export = exporter.export

        def counted(spans: Sequence[Any]) -> Any:
            self.unsent += len(spans)
            result = export(spans)
            if result is SpanExportResult.SUCCESS:
                self.unsent -= len(spans)
            return result

        if kind == "traces":
            exporter.export = counted
        return exporter
