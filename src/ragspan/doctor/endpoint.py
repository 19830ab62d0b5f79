"""What the record says about the OTLP endpoints: whether they took what was sent to them, and who is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint

from ragspan.config import variable
from ragspan.doctor.backends import Backend, identify
from ragspan.doctor.causes import (
    EXPLANATIONS,
    GRPC_PORT,
    HTTP_PORT,
    Place,
    advice_about,
    mix_up,
    place_of,
    proxy_for,
    trouble_with,
)
from ragspan.doctor.findings import Finding, State
from ragspan.doctor.replies import advice_on_words, meaning_of
from ragspan.doctor.watching import Journal, Reply, WatchedRecord, is_grpc, is_otlp
from ragspan.telemetry.environment import Signal, exporter_names, exporter_of

_SIGNALS: tuple[Signal, ...] = ("traces", "metrics", "logs")


@dataclass(slots=True)
class Endpoints:
    """The findings, and what the last check builds on."""

    findings: list[Finding] = field(default_factory=list)
    backend: Backend | None = None
    takes_spans: bool = True
    """False if there is an endpoint for spans that did not take them."""


def endpoint_findings(watched: WatchedRecord, seconds: float) -> Endpoints:
    """What became of each signal that is exported by OTLP.

    Args:
        watched: the record that was sent.
        seconds: how long the endpoint may take to say who it is.
    """
    result = Endpoints()
    for signal, entry in _exporters():
        journal = watched.journals.get(signal, Journal())
        for finding in _examine(signal, entry, watched, journal, result, seconds):
            if finding.facts.get("trouble") is None or finding.facts not in [one.facts for one in result.findings]:
                result.findings.append(finding)  # an endpoint that several signals share is missed once
    if not result.findings:
        result.findings.append(_finding("skipped", "no OTLP exporter is configured, so there is no endpoint to reach"))
    return result


def _exporters() -> Iterator[tuple[Signal, EntryPoint]]:
    """Those that send by OTLP and are installed; the check before reports the others."""
    for signal in _SIGNALS:
        for name in exporter_names(signal):
            try:
                entry = exporter_of(signal, name)
                entry.load()
            except Exception:  # noqa: BLE001, S112 - the check before reports it
                continue
            if is_otlp(entry):
                yield signal, entry


def _examine(
    signal: Signal, entry: EntryPoint, watched: WatchedRecord, journal: Journal, result: Endpoints, seconds: float
) -> Iterator[Finding]:
    url = export_url(signal, entry)
    place = place_of(url, is_grpc=is_grpc(entry)) if url else None
    if place is None:
        result.takes_spans &= signal != "traces"
        yield _not_a_url(signal)
        return
    proxy = proxy_for(place)
    if proxy is not None:
        yield _finding("ok", f"{signal}: requests to {place.shown} go through the proxy {proxy}", proxy=proxy)
    if journal.replies:
        is_taken, finding = _replied(signal, place, journal.replies[-1])
    elif journal.successes or journal.errors:
        is_taken, finding = _not_replied(signal, place, journal, watched)
    elif signal == "traces":
        found = f"traces: the exporter was not done with {place.shown} in the time that there was"
        is_taken, finding = False, _finding("failed", found, advice_about("timeout", place))
    else:
        return  # nothing was sent
    yield finding
    if signal == "traces":
        result.takes_spans &= is_taken
        if journal.replies:
            yield from _tell_backend(place, journal, result, seconds)


def export_url(signal: Signal, entry: EntryPoint) -> str | None:
    """Where the exporter sends to: its own endpoint as it is, or the common one with the signal's path.

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


def _replied(signal: Signal, place: Place, reply: Reply) -> tuple[bool, Finding]:
    meaning = meaning_of(reply, signal)
    return meaning.is_taken, _finding(
        "ok" if meaning.is_taken else _failure(signal),
        f"{signal}: {place.shown} {'takes them' if meaning.is_taken else 'does not take them'}: {meaning.found}",
        meaning.advice,
        signal=signal,
        url=place.shown,
        status=reply.status,
    )


def _not_replied(signal: Signal, place: Place, journal: Journal, watched: WatchedRecord) -> tuple[bool, Finding]:
    """What can be said without a reply: by gRPC none is seen, or there was none."""
    if journal.successes and all(journal.successes):
        found = f"{signal}: {place.shown} takes them, as the exporter says"
        return True, _finding("ok", found, signal=signal, url=place.shown)
    trouble = next((kind for error in reversed(journal.errors) if (kind := trouble_with(error))), None)
    if trouble:
        found = f"{signal}: {place.host}:{place.port} cannot be reached: {EXPLANATIONS[trouble]}"
        facts = {"url": f"{place.host}:{place.port}", "trouble": trouble}
        return False, _finding(_failure(signal), found, advice_about(trouble, place), **facts)
    reason = watched.complaints[-1] if watched.complaints else "the exporter does not say why"
    advice = advice_on_words(reason, signal) or mix_up(place)
    found = f"{signal}: {place.shown} does not take them: {reason}"
    return False, _finding(_failure(signal), found, advice, signal=signal, url=place.shown)


def _tell_backend(place: Place, journal: Journal, result: Endpoints, seconds: float) -> Iterator[Finding]:
    backend = identify(place.url, journal.replies[-1], lambda url: journal.get(url, seconds=seconds / 4))
    if backend is None:
        return
    result.backend = backend
    yield _finding("ok", f"{backend.name} answers there: {backend.shows_scores}", backend=backend.name)
    needless = [signal for signal in _SIGNALS if signal not in backend.takes and exporter_names(signal)]
    if needless:
        switches = " ".join(f"OTEL_{signal.upper()}_EXPORTER=none" for signal in needless)
        yield _finding("warning", f"{backend.name} takes no {' and no '.join(needless)}", f"set {switches}")


def _finding(state: State, found: str, advice: str | None = None, **facts: object) -> Finding:
    return Finding(check="endpoint", state=state, found=found, advice=advice, facts=facts)


def _failure(signal: Signal) -> State:
    """Scores are on spans; without the other signals they can still be seen."""
    return "failed" if signal == "traces" else "warning"


def _not_a_url(signal: Signal) -> Finding:
    return Finding(
        check="endpoint",
        state=_failure(signal),
        found=f"{signal}: the endpoint is no address that begins with http:// or https://",
        advice="write it as http://localhost:4318",
        is_misuse=True,
    )
