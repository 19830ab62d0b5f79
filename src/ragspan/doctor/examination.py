"""Makes the checks in order, each within its time.

Guarantees:
- A check ends when its time is up. What hangs stays in a daemon thread, and the finding says so. Only the import of the
  judge's libraries has no limit.
- What a check raises becomes a finding without a traceback.
- No finding has a secret in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import itertools
import platform
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ragspan.addresses import secrets_in_url, shown_url
from ragspan.arguments import texts_in
from ragspan.config import Settings, process_environment, variable, without_effect
from ragspan.defaults import sink_from
from ragspan.doctor import Check, Finding, State, finding, misuse
from ragspan.doctor.advice import Code
from ragspan.doctor.logs import captured_logs
from ragspan.doctor.receiver import ask_receiver
from ragspan.doctor.tools import writes_to_spans
from ragspan.doctor.watching import new_record, watch_record
from ragspan.exceptions import ConfigurationError
from ragspan.installed import requirements_of_extra
from ragspan.judges.presets import PRESETS
from ragspan.metrics.metric_catalogue import judge_from
from ragspan.telemetry.environment import exporter_is_configured, sdk_is_disabled

_INNER = 0.8  # share of a check's time after which it ends by itself, with more to say
_FLUSHING, _SHUTTING_DOWN = 0.7, 0.2  # shares of the time
_PUBLISHING, _LOOKING = 0.35, 0.45  # likewise, with a sink
_LIMITS: Sequence[tuple[str, Code, int, str]] = (
    # Four metrics with explanations and OpenInference names, and some for content.
    ("COUNT", "few_attributes", 64, "ragspan leaves out those of an answer that do not fit"),
    ("VALUE_LENGTH", "short_attributes", 32, "record ids and explanations are cut"),
)
"""Of OpenTelemetry's SDK: the kind, the code of a finding, the least that scores need, and what happens with less."""
_WATCHED: Sequence[Check] = ("judge", "endpoint", "record")
_SCORED_ELSEWHERE = (
    "RAGSPAN_SINK sends records to workers, which score and export them: run `ragspan doctor` with a worker's "
    "environment, and without RAGSPAN_SINK, for the rest of the way"
)


def examine(*, timeout: float = 30.0, receiver: str | None = None) -> Iterator[Finding]:
    """Make the checks, one after the other; each finding comes as soon as it is there.

    Args:
        timeout: seconds that each check may take, more than 0. The judge, the endpoint and the record are one check.
        receiver: the address of a `ragspan worker --otlp`, which is asked what it could not read.
    """
    hide = Secrets().hide
    asked = within(timeout, "receiver", lambda: ask_receiver(receiver, timeout * _INNER)) if receiver else ()
    for each in itertools.chain(_findings(timeout), asked):
        yield dataclasses.replace(each, found=hide(each.found), advice=each.advice and hide(each.advice))


def _findings(timeout: float) -> Iterator[Finding]:
    settings: Settings | None = None
    with captured_logs():  # the unknown names are logged, too
        try:
            settings = Settings.from_environment()
        except ConfigurationError as error:
            yield misuse("settings", error)
    yield from _settings(settings)
    yield _installation()
    if settings is None:
        yield from _skipped(_WATCHED, "a setting cannot be used, so there is no engine to make")
    elif not settings.enabled:
        yield from _skipped(_WATCHED, "RAGSPAN_ENABLED turns ragspan off")
    elif settings.sink is not None:
        yield from within(timeout, "sink", lambda: _publish(settings, timeout * _INNER))
        yield from _skipped(_WATCHED, _SCORED_ELSEWHERE, "scored_elsewhere")
    elif sdk_is_disabled():
        yield from _skipped(_WATCHED, "OTEL_SDK_DISABLED is true: there are no spans for scores")
    else:
        yield from _watched(settings, timeout)


def _watched(settings: Settings, timeout: float) -> Iterator[Finding]:
    """What one record shows about everything on its way."""
    try:
        judge = judge_from(settings)  # without a limit: the first import of a provider's client takes seconds
    except ConfigurationError as error:
        yield misuse("judge", error)
        yield from _skipped(_WATCHED[1:], "without a judge there is no engine to make")
        return
    seconds = timeout * _INNER
    yield from within(timeout, "record", lambda: watch_record(judge.name, settings, seconds))


def within(timeout: float, check: Check, make: Callable[[], Iterable[Finding]]) -> Sequence[Finding]:
    """What the check finds, or that it does not end."""
    results: queue.SimpleQueue[Sequence[Finding]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(list(make()))
        except ConfigurationError as error:
            results.put([misuse(check, error)])
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody looks for help and gets no traceback
            results.put(
                [finding(check, "check_failed", "failed", f"the check itself failed: {type(error).__name__}: {error}")]
            )

    threading.Thread(target=run, name=f"ragspan-{check}", daemon=True).start()
    try:
        return results.get(timeout=timeout)
    except queue.Empty:
        hung = finding(check, "did_not_end", "failed", f"the check did not end within {timeout:g} s")
        return [dataclasses.replace(hung, is_hanging=True)]


def _skipped(checks: Iterable[Check], reason: str, code: Code = "not_examined") -> Iterator[Finding]:
    return (finding(check, code, "skipped", reason) for check in checks)


# Settings --------------------------------------------------------------------------------------------------------------


def _settings(settings: Settings | None) -> Iterator[Finding]:
    variables = sorted(process_environment().items())
    given = {name: _shown(name, value) for name, value in variables if name.startswith("RAGSPAN_") and value.strip()}
    words = ", ".join(f"{name}={value}" for name, value in given.items())
    yield finding("settings", "variables", "ok", words or "no RAGSPAN_ variable is set", variables=given)
    for words in without_effect():
        yield finding("settings", "without_effect", "warning", words)
    if settings is not None and not settings.enabled:
        found = "RAGSPAN_ENABLED turns ragspan off: nothing is captured, nothing is scored"
        yield finding("settings", "turned_off", "failed", found)
    if settings is not None and settings.sample_rate == 0:
        yield finding("settings", "sample_rate_zero", "failed", "RAGSPAN_SAMPLE_RATE is 0: no answer is scored")
    makes_spans = settings is None or any(name == "otel" or writes_to_spans(name) for name in settings.emitters)
    if settings is not None and not makes_spans and exporter_is_configured():
        found = f"RAGSPAN_EMITTERS leaves 'otel' out: scores go on no span, only to {', '.join(settings.emitters)}"
        yield finding("settings", "no_otel_emitter", "warning", found, emitters=",".join(settings.emitters))
    if sdk_is_disabled():
        found = "OTEL_SDK_DISABLED is true: no spans are made, and so no scores"
        yield finding("settings", "sdk_disabled", "failed", found)
    for kind, code, least, harm in _LIMITS:
        names = (f"OTEL_SPAN_ATTRIBUTE_{kind}_LIMIT", f"OTEL_ATTRIBUTE_{kind}_LIMIT")
        name, limit = next(((name, text) for name in names if (text := variable(name))), ("", ""))
        if limit.isdecimal() and int(limit) < least:
            yield finding("settings", code, "warning", f"{name} is {limit}: {harm}", least=least)


def _shown(name: str, value: str) -> str:
    if name == _OPTIONS or "://" not in value:
        return "(set)" if _HOLDS_SECRET.search(name) else value
    return shown_url(value)


def _installation() -> Finding:
    """The versions of everything that takes part. The doctor does not know frameworks: each integration's extra names them."""
    points = importlib.metadata.entry_points(group="opentelemetry_instrumentor")
    ours = sorted({point.dist.name for point in points if point.name.startswith("ragspan_") and point.dist})
    frameworks = [re.split(r"[^\w.-]", one)[0] for name in ours for one in requirements_of_extra(name, "instruments")]
    names = ("ragspan", *ours, *frameworks, "opentelemetry-sdk", "openai")
    versions = {"python": platform.python_version(), **{name: _version(name) for name in names}}
    words = ", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items())
    if not ours:
        words += "; no integration with a framework is installed: only ragspan.capture and your own records are scored"
    return finding(
        "settings", "versions" if ours else "no_integration", "ok" if ours else "warning", words, versions=versions
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


# Where the record leaves this process ----------------------------------------------------------------------------------


def _publish(settings: Settings, seconds: float) -> Iterator[Finding]:
    """Hand one record to the sink of `RAGSPAN_SINK`; whether it was taken, and whether somebody scores what it takes."""
    with captured_logs() as complaints:
        sink: Any = sink_from(settings)  # of an engine's methods, a sink needs no more than `submit`
        record = new_record()
        sink.submit(record)
        if not _has(sink, "flush", "stats", "shutdown"):
            found = f"a record was submitted, record_id {record.record_id}; this sink does not say what becomes of it"
            yield finding("sink", "sink_silent", "warning", found, record_id=record.record_id)
            return
        is_out = sink.flush(seconds * _PUBLISHING)
        dropped = dict(sink.stats().dropped)
        last = f": {complaints[-1]}" if complaints else ""
        sink.shutdown(seconds * _SHUTTING_DOWN)
    if not is_out or dropped:
        reasons = ", ".join(dropped) or "no reply in time"
        yield finding(
            "sink", "sink_refuses", "failed", f"the broker did not accept a record ({reasons}){last}", dropped=dropped
        )
        return
    found = f"the broker accepted a record, record_id {record.record_id}"
    yield finding("sink", "sink_accepts", "ok", found, record_id=record.record_id)
    if _has(sink, "look_for_workers"):
        is_taken, seen = sink.look_for_workers(seconds * _LOOKING)
        code, state = _TAKING[is_taken]
        yield finding("sink", code, state, seen)


_TAKING: Mapping[bool | None, tuple[Code, State]] = {
    True: ("worker_takes", "ok"),
    False: ("no_worker", "failed"),
    None: ("worker_unknown", "warning"),
}
"""By whether a worker takes what is in the stream; None if that is not known."""


def _has(sink: object, *methods: str) -> bool:
    return all(callable(getattr(sink, method, None)) for method in methods)


# Secrets ---------------------------------------------------------------------------------------------------------------

_SHORTEST_SECRET = 6  # shorter values (experiment numbers, tenants) are not secrets, and would be found in any word
_LONGEST_TEXT = 600
_OURS = re.compile(r"(OTEL|OPENAI|RAGSPAN|PHOENIX|MLFLOW|LANGFUSE|LANGSMITH|LANGCHAIN|DD)_.*|.*_proxy", re.IGNORECASE)
_OF_PROVIDERS = frozenset(key for preset in PRESETS.values() for key in preset.keys)
_HOLDS_SECRET = re.compile(r"HEADERS|KEY|TOKEN|PASSWORD|SECRET|OPTIONS")
_KEY = re.compile(r"\bsk-[\w*-]+")
_OPTIONS = "RAGSPAN_JUDGE_OPTIONS"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Secrets:
    """The secrets of this environment. Servers and libraries may repeat what was sent to them."""

    def __init__(self) -> None:
        found = {secret for secret in _secrets() if len(secret) >= _SHORTEST_SECRET}
        self._secrets = sorted(found, key=len, reverse=True)  # a secret may be a part of another

    def hide(self, words: str) -> str:
        """The words without secrets, without control characters, and not too long."""
        for secret in self._secrets:
            words = words.replace(secret, "[secret]")
        words = _CONTROL.sub(" ", _KEY.sub("[secret]", words))
        return words if len(words) <= _LONGEST_TEXT else words[: _LONGEST_TEXT - 1] + "…"


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
