"""The third check: what the `OTEL_*` variables make of a score, as the SDK reads them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

from ragspan.config import Settings, variable
from ragspan.doctor.findings import Finding, State
from ragspan.doctor.redaction import header_names
from ragspan.doctor.watching import is_grpc
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.environment import Signal, exporter_is_configured, exporter_names, exporter_of

RECOMMENDED_BATCH = 16
"""Spans that are encoded at once: encoding holds the interpreter, and with it the requests."""
RECOMMENDED_DELAY_MS = 50

_SIGNALS: tuple[Signal, ...] = ("traces", "metrics", "logs")
_TRUE = {"true"}  # the only spelling that the SDK takes for true
_ATTRIBUTES_OF_AN_ANSWER = 64  # four metrics with explanations and OpenInference names, and some for content
_CHARACTERS_OF_A_RECORD_ID = 32


def examine_telemetry(settings: Settings | None) -> list[Finding]:
    """Look at the exporters, the sampler, the batches and the limits of attributes."""
    findings = [_switched_off(), *_exporters(), *_headers(), *_sampler(settings), *_limits()]
    if exporter_is_configured() and not (settings and settings.export == "helper"):
        findings.append(_batches())
    return [finding for finding in findings if finding is not None]


def _finding(state: State, found: str, advice: str | None = None, **facts: object) -> Finding:
    return Finding(check="telemetry", state=state, found=found, advice=advice, facts=facts)


def sdk_is_disabled() -> bool:
    return (variable("OTEL_SDK_DISABLED") or "").lower() in _TRUE


def _switched_off() -> Finding | None:
    if not sdk_is_disabled():
        return None
    return _finding("failed", "OTEL_SDK_DISABLED is true: no spans are made, and so no scores", "unset it")


def _exporters() -> Iterator[Finding]:
    for signal in _SIGNALS:
        names = exporter_names(signal)
        if not names:
            yield _no_exporter(signal)
        for name in names:
            yield _exporter(signal, name)


def _no_exporter(signal: Signal) -> Finding:
    if signal != "traces":
        lost = {"metrics": "the histogram of scores and ragspan's own figures", "logs": "scores as events"}[signal]
        return _finding("ok", f"{signal}: no exporter, so {lost} go nowhere; scores on spans need none")
    return _finding(
        "failed",
        "traces: no exporter is configured, so no score goes anywhere",
        "set OTEL_TRACES_EXPORTER=otlp and OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 (or where your tool "
        "listens); an exporter that your application sets up in its own code cannot be seen from here",
    )


def _exporter(signal: Signal, name: str) -> Finding:
    try:
        entry = exporter_of(signal, name)
    except ConfigurationError as error:
        return Finding(check="telemetry", state="failed", found=str(error), is_misuse=True)
    distribution = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    found = f"{signal}: the exporter {entry.name}{distribution}"
    try:
        entry.load()
    except Exception as error:  # noqa: BLE001 - a package of somebody else's, half installed
        return _finding("failed", f"{found} cannot be loaded: {type(error).__name__}: {error}", "install it again")
    return _finding("ok", found, _for_the_agent(signal, name, entry), signal=signal, exporter=entry.name)


def _for_the_agent(signal: Signal, name: str, entry: EntryPoint) -> str | None:
    """What `opentelemetry-instrument` has to be told besides: left to itself it exports nothing, or by gRPC."""
    if name != "otlp":
        return None
    missing = [] if variable(f"OTEL_{signal.upper()}_EXPORTER") else [f"OTEL_{signal.upper()}_EXPORTER=otlp"]
    protocols = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if not is_grpc(entry) and not any(map(variable, protocols)):
        missing.append("OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
    if not missing:
        return None
    return f"under opentelemetry-instrument, which has other defaults, set {' and '.join(missing)} as well"


def _headers() -> Iterator[Finding]:
    for name in (
        "OTEL_EXPORTER_OTLP_HEADERS",
        *(f"OTEL_EXPORTER_OTLP_{signal.upper()}_HEADERS" for signal in _SIGNALS),
    ):
        text = variable(name)
        if text is None:
            continue
        names = header_names(text)
        if len(names) < len([pair for pair in text.split(",") if pair.strip()]):
            yield _finding(
                "warning",
                f"{name} holds something that is no header, and that is left out",
                "write name=value,name=value; a comma or a blank within a value is written as %2C or %20",
            )
        if names:
            yield _finding("ok", f"{name} adds the headers {', '.join(names)}", headers=names)


_RATIO_SAMPLERS = {"traceidratio", "parentbased_traceidratio"}


def _sampler(settings: Settings | None) -> Iterator[Finding]:
    name = variable("OTEL_TRACES_SAMPLER")
    if name is None:
        return
    argument = variable("OTEL_TRACES_SAMPLER_ARG")
    share = {"always_off": 0.0, "parentbased_always_off": 0.0}.get(name)
    if name in _RATIO_SAMPLERS:
        share = _ratio(argument)
        if share is None:
            yield _finding(
                "warning",
                f"OTEL_TRACES_SAMPLER_ARG is {argument!r}, which is no number from 0 to 1: the SDK takes all traces",
                "set it to the share of traces that are to be kept, such as 0.1",
            )
            return
    if share == 0:
        yield _takes_nothing(name, settings)
    elif share is not None:
        yield _finding("ok", f"{name} keeps {share:.4g} of all traces; answers of the others are not scored")
    else:
        yield _finding("ok", f"OTEL_TRACES_SAMPLER={name}")


def _ratio(argument: str | None) -> float | None:
    try:
        share = float(argument or "1")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def _takes_nothing(name: str, settings: Settings | None) -> Finding:
    if settings is not None and settings.score_unsampled:
        return _finding(
            "warning",
            f"OTEL_TRACES_SAMPLER={name} keeps no trace: scores go only into metrics and logs",
            "set OTEL_TRACES_SAMPLER=parentbased_always_on to see them on spans",
        )
    return _finding(
        "warning" if name.startswith("parentbased") else "failed",
        f"OTEL_TRACES_SAMPLER={name} keeps no trace"
        + (" but those that a caller has sampled" if name.startswith("parentbased") else "")
        + ", and answers of traces that are not kept are not scored",
        "set OTEL_TRACES_SAMPLER=parentbased_always_on, or a ratio above 0",
    )


def _limits() -> Iterator[Finding]:
    count = _first_number("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
    if count and count[1] < _ATTRIBUTES_OF_AN_ANSWER:
        yield _finding(
            "warning",
            f"{count[0]} is {count[1]}: an answer with all scores has up to {_ATTRIBUTES_OF_AN_ANSWER} attributes, "
            "and ragspan leaves out those that do not fit",
            f"set it to {_ATTRIBUTES_OF_AN_ANSWER} or more (the default is 128), or RAGSPAN_OPENINFERENCE=false",
        )
    length = _first_number("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")
    if length and length[1] < _CHARACTERS_OF_A_RECORD_ID:
        yield _finding(
            "warning",
            f"{length[0]} is {length[1]}: record ids and explanations are cut",
            f"set it to {_CHARACTERS_OF_A_RECORD_ID} at least; 1000 leaves explanations whole",
        )


def _first_number(*names: str) -> tuple[str, int] | None:
    """The first of these variables that is set, if it is set to a number."""
    for name in names:
        text = variable(name)
        if text is not None:
            return (name, int(text)) if text.isdecimal() else None
    return None


def _batches() -> Finding:
    batch = _first_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or ("", 512)
    delay = _first_number("OTEL_BSP_SCHEDULE_DELAY") or ("", 5000)
    found = f"spans are sent in batches of up to {batch[1]}, after {delay[1]} ms at most"
    if batch[1] <= RECOMMENDED_BATCH and delay[1] <= RECOMMENDED_DELAY_MS:
        return _finding("ok", found)
    return _finding(
        "ok",
        found,
        "smaller batches keep requests from waiting while spans are encoded: "
        f"OTEL_BSP_MAX_EXPORT_BATCH_SIZE={RECOMMENDED_BATCH} OTEL_BSP_SCHEDULE_DELAY={RECOMMENDED_DELAY_MS}",
    )
