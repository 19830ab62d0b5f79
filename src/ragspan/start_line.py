"""What is scored, by whom, and where the scores go: the one line that `configure()` logs and `ragspan run` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opentelemetry import trace

from ragspan.addresses import shown_url
from ragspan.config import Settings
from ragspan.metrics import Metric
from ragspan.telemetry import Emitter, OTelEmitter, environment
from ragspan.telemetry.console import ConsoleEmitter
from ragspan.tools import ScoreWriter


def line_of_sink(settings: Settings, frameworks: Sequence[str]) -> str:
    """Where `RAGSPAN_SINK` sends the answers."""
    return f"answers of {_joined(frameworks)} go to {shown_url(settings.sink or '')}, where workers score them"


def line_of_engine(
    settings: Settings, frameworks: Sequence[str], metrics: Sequence[Metric], emitters: Sequence[Emitter]
) -> str:
    """What an engine with these metrics and emitters does."""
    if not settings.enabled:
        return "RAGSPAN_ENABLED is false: nothing is captured, and nothing is scored"
    if not metrics:
        return f"answers of {_joined(frameworks)} are traced and not scored: there are no metrics"
    share = "" if settings.sample_rate == 1 else f"{settings.sample_rate:.3g} of the "
    asked = [getattr(metric, "judge", None) or getattr(metric, "verifier", None) for metric in metrics]
    judges = [name for one in asked if (name := getattr(one, "name", None))]
    by = f" by {_joined(judges)}" if judges else ""
    places = [place for emitter in emitters for place in _places(emitter)]
    names = ", ".join(metric.name for metric in metrics)
    where = f"scores go to {_joined(places)}" if places else "scores go nowhere"
    return f"{share}answers of {_joined(frameworks)} are scored{by} ({names}); {where}"


def _places(emitter: Emitter) -> Iterator[str]:
    """Where scores of this emitter are seen."""
    if isinstance(emitter, ConsoleEmitter):
        yield "the console"
    elif isinstance(emitter, ScoreWriter):
        yield f"{emitter.name} at {shown_url(emitter.client.endpoint.url)}"
    elif not isinstance(emitter, OTelEmitter):
        yield type(emitter).__name__
    elif environment.exporter_is_configured():
        for name in environment.exporter_names("traces"):
            address = environment.endpoint("traces") if name.startswith("otlp") else None
            yield shown_url(address) if address else f"the exporter {name}"
    elif callable(getattr(trace.get_tracer_provider(), "force_flush", None)):
        yield "the application's tracer provider"


def _joined(words: Sequence[str]) -> str:
    """The words, each once, with commas and `and`."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} and {last}" if first else last
