"""The fourth check: whether the OTLP endpoints take what is sent to them, and who answers there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any

from ragspan.config import variable
from ragspan.doctor.answers import advice_on_words, meaning_of
from ragspan.doctor.backends import Backend, identify
from ragspan.doctor.causes import EXPLANATIONS, Trouble, trouble_with
from ragspan.doctor.findings import Finding, State
from ragspan.doctor.overhearing import overheard
from ragspan.doctor.reaching import GRPC_PORT, HTTP_PORT, Place, advice_about, mix_up, place_of, proxy_for, reach
from ragspan.doctor.sending import Answer, Journal, get_page, is_grpc, is_otlp, make_watched
from ragspan.doctor.telemetry import sdk_is_disabled
from ragspan.telemetry.environment import Signal, exporter_names, exporter_of

_SIGNALS: tuple[Signal, ...] = ("traces", "metrics", "logs")
_CONNECTING = 0.25  # shares of the time that there is for an endpoint
_SENDING = 0.6
_ASKING = 0.05


@dataclass(slots=True)
class Endpoints:
    """What the check comes to, for the next one to build on."""

    findings: list[Finding] = field(default_factory=list)
    backend: Backend | None = None
    takes_spans: bool = True
    """False if there is an endpoint for spans that does not take them."""


def examine_endpoints(seconds: float) -> Endpoints:
    """Send a little of each signal that is exported by OTLP to where it is to go."""
    result = Endpoints()
    if sdk_is_disabled():
        result.findings.append(_finding("skipped", "OTEL_SDK_DISABLED is true: nothing is sent"))
        return result
    exporters = list(_exporters())
    unreachable: set[tuple[str, int]] = set()
    for signal, entry in exporters:
        result.findings += _examine(signal, entry, result, unreachable, seconds / len(exporters))
    if not exporters:
        result.findings.append(_finding("skipped", "no OTLP exporter is configured, so there is no endpoint to reach"))
    return result


def _exporters() -> Iterator[tuple[Signal, EntryPoint]]:
    """Those that send by OTLP and are installed; the check before has told of the others."""
    for signal in _SIGNALS:
        for name in exporter_names(signal):
            try:
                entry = exporter_of(signal, name)
                entry.load()
            except Exception:  # noqa: BLE001, S112 - the check before tells what is wrong with it
                continue
            if is_otlp(entry):
                yield signal, entry


def export_url(signal: Signal, entry: EntryPoint) -> str | None:
    """Where the exporter sends to: its own endpoint as it stands, or the common one with the signal's path.

    None if the common one is no address: with a path it could be taken for one.
    """
    own = variable(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    common = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
    if is_grpc(entry):
        return own or common or f"http://localhost:{GRPC_PORT}"
    if own:
        return own
    common = common or f"http://localhost:{HTTP_PORT}"
    return f"{common.removesuffix('/')}/v1/{signal}" if place_of(common, is_grpc=False) else None


def _examine(
    signal: Signal, entry: EntryPoint, result: Endpoints, unreachable: set[tuple[str, int]], seconds: float
) -> Iterator[Finding]:
    url = export_url(signal, entry)
    place = place_of(url, is_grpc=is_grpc(entry)) if url else None
    if place is None:
        result.takes_spans &= signal != "traces"
        yield _not_a_url(signal)
        return
    if (place.host, place.port) in unreachable:
        return
    proxy = proxy_for(place)
    if proxy is not None:
        yield _finding("ok", f"{signal}: requests to {place.shown} go through the proxy {proxy}", proxy=proxy)
    elif trouble := reach(place, seconds=seconds * _CONNECTING):
        unreachable.add((place.host, place.port))
        result.takes_spans &= signal != "traces"
        yield _unreachable(signal, place, trouble)
        return
    yield from _send(signal, entry, place, result, seconds)


def _send(signal: Signal, entry: EntryPoint, place: Place, result: Endpoints, seconds: float) -> Iterator[Finding]:
    """Send a little there, and tell what came of it and who has answered."""
    with contextlib.closing(Journal()) as journal, overheard() as lines:
        try:
            says_success = _send_a_little(signal, entry, journal, seconds * _SENDING)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with an exporter is a finding
            result.takes_spans &= signal != "traces"
            yield _finding(_failure(signal), f"{signal}: the exporter fails: {type(error).__name__}: {error}")
            return
        answer = journal.answers[-1] if journal.answers else None
        if answer is None:
            is_taken, finding = _unanswered(signal, place, journal, lines, says_success=says_success)
        else:
            is_taken, finding = _answered(signal, place, answer)
        yield finding
        if signal == "traces":
            result.takes_spans &= is_taken
            if answer is not None:
                yield from _tell_backend(place, answer, journal, result, seconds)


def _answered(signal: Signal, place: Place, answer: Answer) -> tuple[bool, Finding]:
    meaning = meaning_of(answer, signal)
    return meaning.is_taken, _finding(
        "ok" if meaning.is_taken else _failure(signal),
        f"{signal}: {place.shown} {'takes them' if meaning.is_taken else 'does not take them'}: {meaning.found}",
        meaning.advice,
        signal=signal,
        url=place.shown,
        status=answer.status,
    )


def _unanswered(
    signal: Signal, place: Place, journal: Journal, lines: Sequence[str], *, says_success: bool
) -> tuple[bool, Finding]:
    """What can be said where no answer was seen: by gRPC, or because there was none."""
    facts = {"signal": signal, "url": place.shown}
    if says_success:
        return True, _finding("ok", f"{signal}: {place.shown} takes them, as the exporter says", **facts)
    trouble = next((kind for error in reversed(journal.errors) if (kind := trouble_with(error))), None)
    reason = EXPLANATIONS[trouble] if trouble else (lines[-1] if lines else "the exporter does not say why")
    advice = advice_about(trouble, place) if trouble else (advice_on_words(reason, signal) or mix_up(place))
    return False, _finding(
        _failure(signal), f"{signal}: {place.shown} does not take them: {reason}", advice, trouble=trouble, **facts
    )


def _tell_backend(
    place: Place, answer: Answer, journal: Journal, result: Endpoints, seconds: float
) -> Iterator[Finding]:
    backend = identify(place.url, answer, lambda url: get_page(journal, url, seconds=seconds * _ASKING))
    if backend is None:
        return
    result.backend = backend
    yield _finding("ok", f"{backend.name} answers there: {backend.shows_scores}", backend=backend.name)
    needless = [signal for signal in _SIGNALS if signal not in backend.takes and exporter_names(signal)]
    if needless:
        switches = " ".join(f"OTEL_{signal.upper()}_EXPORTER=none" for signal in needless)
        yield _finding("warning", f"{backend.name} takes no {' and no '.join(needless)}", f"set {switches}")


def _send_a_little(signal: Signal, entry: EntryPoint, journal: Journal, seconds: float) -> bool:
    """Send one span, or an empty request of another signal; whether the exporter says that it was taken."""
    exporter = make_watched(entry, journal, seconds=seconds)
    try:
        return bool(exporter.export(_a_little(signal)).name == "SUCCESS")
    finally:
        exporter.shutdown()


def _a_little(signal: Signal) -> Any:
    if signal == "metrics":
        from opentelemetry.sdk.metrics.export import MetricsData

        return MetricsData(resource_metrics=[])
    if signal == "logs":
        return []
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    span = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False).get_tracer("ragspan").start_span(PROBE)
    span.end()
    return [span]


def _finding(state: State, found: str, advice: str | None = None, **facts: object) -> Finding:
    return Finding(check="endpoint", state=state, found=found, advice=advice, facts=facts)


def _failure(signal: Signal) -> State:
    """Scores are on spans; without the other signals they are still to be seen."""
    return "failed" if signal == "traces" else "warning"


def _not_a_url(signal: Signal) -> Finding:
    return Finding(
        check="endpoint",
        state=_failure(signal),
        found=f"{signal}: the endpoint is no address that begins with http:// or https://",
        advice="write it as http://localhost:4318",
        is_misuse=True,
    )


def _unreachable(signal: Signal, place: Place, trouble: Trouble) -> Finding:
    found = f"{signal}: {place.host}:{place.port} cannot be reached: {EXPLANATIONS[trouble]}"
    advice = advice_about(trouble, place)
    return _finding(_failure(signal), found, advice, signal=signal, url=place.shown, trouble=trouble)


PROBE = "ragspan doctor probe"
"""The name of the span that this check sends."""
