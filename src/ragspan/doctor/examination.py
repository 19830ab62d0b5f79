"""Makes the checks in order, each within its time: what hangs stays in a daemon thread, and the finding says so.

What a check raises becomes a finding without a traceback, and no finding has a secret in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import platform
import queue
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from ragspan.addresses import cause_of, secrets_in_url, shown_url
from ragspan.config import Settings, process_environment, variable, without_effect
from ragspan.defaults import sink_from
from ragspan.doctor import HANGING, MISUSE, Check, Finding
from ragspan.doctor.record import DOCS, captured_logs, new_record, watch_record
from ragspan.engine.redaction import redact_from
from ragspan.exceptions import ConfigurationError
from ragspan.installed import requirements_of_extra
from ragspan.judges.judge_catalogue import texts_in
from ragspan.judges.judge_protocols import Judge
from ragspan.judges.presets import PRESETS
from ragspan.metrics.metric_catalogue import judge_from, metric_part
from ragspan.telemetry.emitter_protocols import emitter_class
from ragspan.telemetry.providers import SDK_IS_OFF, why_no_spans
from ragspan.telemetry.values import bounded

_INNER = 0.8  # share of a check's time after which it ends by itself, with more to say
_PUBLISHING, _LOOKING, _SHUTTING_DOWN = 0.35, 0.45, 0.2  # shares of the time, with a sink


def examine(*, timeout: float = 30.0) -> Iterator[Finding]:
    """Make the checks, one after the other; each finding comes as soon as it is there.

    Args:
        timeout: seconds that each check may take, more than 0. The judge, the endpoint and the record are one check.
    """
    hide = secrets_hider()
    for each in _findings(timeout):
        yield dataclasses.replace(each, found=hide(each.found), advice=each.advice and hide(each.advice))


def _findings(timeout: float) -> Iterator[Finding]:
    settings: Settings | None = None
    judge: Judge | None = None
    wrong: list[Finding] = []
    with captured_logs():  # the unknown names are logged, too
        try:
            settings = Settings.from_environment()
            if settings.enabled:
                redact_from(settings.redact)
            if settings.enabled and settings.sink is None:
                for name in set(settings.emitters) - {"otel", "console"}:
                    emitter_class(name)
                for name in settings.metrics:
                    metric_part(name, "RAGSPAN_METRICS: ")
                judge = judge_from(settings)  # without a limit: the first import of a provider's client takes seconds
        except ConfigurationError as error:
            wrong.append(Finding("settings", MISUSE, "failed", str(error)))
    wrong += _switched_off(settings)
    yield from wrong
    said = " ".join(one.found for one in wrong)
    given = {
        name: ("(set)" if _HOLDS_SECRET.search(name) else value)
        if name == _OPTIONS or "://" not in value
        else shown_url(value)
        for name, value in sorted(process_environment().items())
        if name.startswith("RAGSPAN_") and value.strip() and not re.search(rf"\b{re.escape(name)}\b", said)
    }
    if given or not wrong:  # those of which something has just been said are left out
        words = ", ".join(f"{name}={value}" for name, value in given.items())
        yield Finding("settings", "variables", "ok", words or "no RAGSPAN_ variable is set")
    yield _installation()
    if settings is None or any(one.state == "failed" for one in wrong):
        found = "no record was sent: a setting cannot be used, or turns scores off"
        yield Finding("record", "not_examined", "skipped", found)
    elif settings.sink is not None:
        yield from within(timeout, "sink", lambda: _publish(settings, timeout * _INNER))
        found = "RAGSPAN_SINK sends records to workers, which score and export them"
        advice = "for the rest of the way run `ragspan doctor` with a worker's environment, and without RAGSPAN_SINK"
        yield Finding("record", "scored_elsewhere", "skipped", found, advice)
    elif judge is not None:
        yield from within(timeout, "record", lambda: watch_record(judge, settings, timeout * _INNER))


def within(timeout: float, check: Check, make: Callable[[], Iterable[Finding]]) -> Sequence[Finding]:
    """What the check finds, or that it does not end."""
    results: queue.SimpleQueue[Sequence[Finding]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(list(make()))
        except ConfigurationError as error:
            results.put([Finding(check, MISUSE, "failed", str(error))])
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody looks for help and gets no traceback
            found = f"the check itself failed: {type(error).__name__}: {error}"
            results.put([Finding(check, "check_failed", "failed", found, "a defect of ragspan: please report it")])

    threading.Thread(target=run, name=f"ragspan-{check}", daemon=True).start()
    try:
        return results.get(timeout=timeout)
    except queue.Empty:
        found = f"the check did not end within {timeout:g} s"
        return [Finding(check, HANGING, "failed", found, "a larger --timeout may show what hangs on the way")]


def _switched_off(settings: Settings | None) -> Iterator[Finding]:
    for words in without_effect():
        yield Finding("settings", "without_effect", "warning", words, f"{DOCS}/settings.md lists the variables")
    sampler, known = variable("OTEL_TRACES_SAMPLER") or "", settings or Settings()
    off = (
        ("turned_off", not known.enabled, "RAGSPAN_ENABLED turns ragspan off"),
        ("sample_rate_zero", known.sample_rate == 0, "RAGSPAN_SAMPLE_RATE is 0"),
        ("sdk_disabled", why_no_spans() == SDK_IS_OFF, SDK_IS_OFF),
        ("sampler_keeps_none", sampler.endswith("always_off"), f"OTEL_TRACES_SAMPLER is {sampler}"),
    )
    for code, is_off, words in off:
        if is_off:
            yield Finding("settings", code, "failed", f"{words}: no answer is scored", "unset it")
    if known.alert_webhook is not None:
        to = urlsplit(known.alert_webhook)
        port = to.port or (443 if to.scheme == "https" else 80)
        try:
            socket.create_connection((to.hostname, port), timeout=2.0).close()
        except OSError as error:
            found = f"alerts do not arrive: {shown_url(known.alert_webhook)}: {cause_of(error) or error}"
            yield Finding("settings", "webhook_unreachable", "warning", found, "correct RAGSPAN_ALERT_WEBHOOK")
    if sampler.endswith("traceidratio"):
        share = variable("OTEL_TRACES_SAMPLER_ARG") or "1"
        found = f"OTEL_TRACES_SAMPLER keeps {share} of all traces: answers of the others are not scored"
        yield Finding("settings", "sampler_keeps_some", "warning", found, "raise OTEL_TRACES_SAMPLER_ARG for more")


def _installation() -> Finding:
    """The versions of everything that takes part. The doctor does not know frameworks: each integration's extra names them."""
    points = importlib.metadata.entry_points(group="opentelemetry_instrumentor")
    ours = sorted({point.dist.name for point in points if point.name.startswith("ragspan_") and point.dist})
    frameworks = [re.split(r"[^\w.-]", one)[0] for name in ours for one in requirements_of_extra(name, "instruments")]
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("ragspan", *ours, *frameworks, "opentelemetry-sdk", "openai"):
        versions[name] = None
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    words = ", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items())
    if ours:
        return Finding("settings", "versions", "ok", words)
    words += "; no integration with a framework is installed: only ragspan.capture and your own records are scored"
    advice = "pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"
    return Finding("settings", "no_integration", "warning", words, advice)


# A sink

_START_WORKER = (
    "start one with `ragspan worker`, with the same RAGSPAN_SINK, the same RAGSPAN_NATS_STREAM, and "
    f"OTEL_EXPORTER_OTLP_ENDPOINT: {DOCS}/fleet.md. Until then records wait"
)
_LOOK_AT_WORKER = (
    "look at a worker's log, and at its page (`ragspan worker --health HOST:PORT`). If the application's user may not "
    "look: permit $JS.API.CONSUMER.INFO.<stream>.<stream>-workers"
)


def _publish(settings: Settings, seconds: float) -> Iterator[Finding]:
    """Hand one record to the sink of `RAGSPAN_SINK`; whether it was taken, and whether somebody scores what it takes."""
    with captured_logs() as complaints:
        sink: Any = sink_from(dataclasses.replace(settings, exit_timeout=0.0))  # the doctor waits, no signal does
        record = new_record()
        sink.submit(record)
        is_out = sink.flush(seconds * _PUBLISHING)
        dropped = dict(sink.stats().dropped)
        # What a broker forbids shows as silence in all that is logged later.
        said = [one for one in complaints if "violation" in one.lower()] or complaints
        last = f": {said[-1]}" if said else ""
        sink.shutdown(seconds * _SHUTTING_DOWN)
    if not is_out or dropped:
        found = f"the broker did not accept a record ({', '.join(dropped) or 'no reply in time'}){last}"
        advice = "check the address and the credentials in RAGSPAN_SINK"
        advice += "" if "violation" in last.lower() else ", and whether the stream is full"
        yield Finding("sink", "sink_refuses", "failed", found, advice)
        return
    yield Finding("sink", "sink_accepts", "ok", f"the broker accepted a record, record_id {record.record_id}")
    if not hasattr(sink, "look_for_workers"):
        return
    is_taken, seen = sink.look_for_workers(seconds * _LOOKING)
    if is_taken:
        yield Finding("sink", "worker_takes", "ok", seen)
    elif is_taken is None:
        yield Finding("sink", "worker_unknown", "warning", seen, _LOOK_AT_WORKER)
    else:
        yield Finding("sink", "no_worker", "failed", seen, _START_WORKER)


# Secrets

_SHORTEST_SECRET = 6  # shorter values (experiment numbers, tenants) are not secrets, and would be found in any word
_LONGEST_TEXT = 600
_OURS = re.compile(r"(OTEL|OPENAI|RAGSPAN|PHOENIX|MLFLOW|LANGFUSE|LANGSMITH|LANGCHAIN|DD)_.*|.*_proxy", re.IGNORECASE)
_OF_PROVIDERS = frozenset(key for preset in PRESETS.values() for key in preset.keys)
_HOLDS_SECRET = re.compile(r"HEADERS|KEY|TOKEN|PASSWORD|SECRET|OPTIONS")
_HIDDEN = re.compile(r"\bsk-[\w*-]+")
_OPTIONS = "RAGSPAN_JUDGE_OPTIONS"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def secrets_hider() -> Callable[[str], str]:
    """What takes the secrets of this environment out of words, and control characters, and cuts long ones.

    Servers and libraries may repeat what was sent to them.
    """
    found = {secret for secret in _secrets() if len(secret) >= _SHORTEST_SECRET}
    secrets = sorted(found, key=len, reverse=True)  # a secret may be a part of another

    def hide(words: str) -> str:
        for secret in secrets:
            words = words.replace(secret, "[secret]")
        return bounded(_CONTROL.sub(" ", _HIDDEN.sub("[secret]", words)), _LONGEST_TEXT)

    return hide


def _secrets() -> Iterator[str]:
    for name, value in process_environment().items():
        if not (_OURS.fullmatch(name) or name in _OF_PROVIDERS):
            continue
        if name == _OPTIONS:
            with contextlib.suppress(ConfigurationError):
                yield from texts_in(Settings.from_environment({name: value}).judge_options)
        elif "HEADERS" in name:
            for pair in value.split(","):
                header = pair.partition("=")[2].strip() or pair.strip()
                for spelling in (header, unquote(header)):
                    yield from (spelling, spelling.rpartition(" ")[2])  # the second is the token of "Bearer token"
        elif _HOLDS_SECRET.search(name):
            yield value.strip()
        elif "://" in value or "@" in value:
            yield from secrets_in_url(value)
