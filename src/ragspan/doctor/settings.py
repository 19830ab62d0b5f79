"""The first check: what `RAGSPAN_*` says, and what is installed.

No framework is known by its name here: an integration's own distribution says what it works with.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import re
from collections.abc import Iterator, Mapping, Sequence

from ragspan.addresses import shown_url
from ragspan.config import Settings, names_by_field, unknown_names, variable
from ragspan.doctor.findings import Finding
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord
from ragspan.redaction import RedactionError, redact_from, redacted

_GROUP = "opentelemetry_instrumentor"
_OURS = "ragspan_"
_FOUNDATIONS = ("ragspan", "opentelemetry-sdk", "openai")
_REQUIREMENT = re.compile(r"""^\s*([\w.-]+).*;\s*extra\s*==\s*["']instruments["']\s*$""")


def read_settings() -> tuple[Settings | None, list[Finding]]:
    """The settings, None if they cannot be used, and what there is to say about them."""
    try:
        settings = Settings.from_environment()
    except ConfigurationError as error:
        wrong = Finding(check="settings", state="failed", found=str(error), is_misuse=True)
        return None, [wrong, *_unknown(), *_installation()]
    return settings, [*_known(settings), *_unknown(), *_installation()]


def _known(settings: Settings) -> Iterator[Finding]:
    changed = changed_settings(settings)
    named = ", ".join(f"{name}={value}" for name, value in changed.items())
    yield Finding(
        check="settings",
        state="ok",
        found=f"{named}; all others have their defaults" if changed else "no RAGSPAN_ variable changes a default",
        facts={"changed": changed},
    )
    if not settings.enabled:
        yield Finding(
            check="settings",
            state="failed",
            found="RAGSPAN_ENABLED turns ragspan off: nothing is captured and nothing is scored",
            advice="unset RAGSPAN_ENABLED, or set it to true",
        )
    if "otel" not in settings.emitters and settings.emitters != ("console",):
        yield Finding(
            check="settings",
            state="warning",
            found="RAGSPAN_EMITTERS leaves 'otel' out: writers such as phoenix and mlflow find no span to write scores to",
            advice=f"set it to {','.join(['otel', *settings.emitters])}",
        )
    if settings.enabled and settings.redact:
        yield _redaction(settings)
    if settings.sample_rate == 0:
        yield Finding(
            check="settings",
            state="failed",
            found="RAGSPAN_SAMPLE_RATE is 0: no answer is scored",
            advice="set it to the share of answers that are to be scored, such as 0.1",
        )


def _redaction(settings: Settings) -> Finding:
    try:
        redact = redact_from(settings.redact)
    except ConfigurationError as error:
        return Finding(check="settings", state="failed", found=str(error), is_misuse=True)
    try:
        redacted(RagRecord(question="Does redaction work?", contexts=None, response=None), redact or str)
    except RedactionError as error:
        return Finding(
            check="settings",
            state="failed",
            found=f"the function of RAGSPAN_REDACT fails for a short text ({error}), so every record is dropped",
            advice="it takes a str, and returns a str",
        )
    return Finding(check="settings", state="ok", found="the function of RAGSPAN_REDACT takes a text and returns one")


def changed_settings(settings: Settings) -> dict[str, str]:
    """The variables whose values are not the defaults; of a secret only that it is set."""
    names, defaults = names_by_field(), Settings()
    return {
        names[field.name]: _shown(field, getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if field.name in names and getattr(settings, field.name) != getattr(defaults, field.name)
    }


def _shown(field: dataclasses.Field[object], value: object) -> str:
    if field.name == "judge_base_url" or (field.repr and isinstance(value, str) and "://" in value):
        return shown_url(str(value))
    if not field.repr:
        return "(set)"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={item}" for name, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _unknown() -> Iterator[Finding]:
    for name, close in unknown_names().items():
        yield Finding(
            check="settings",
            state="warning",
            found=f"{name} is set, but ragspan knows no such variable",
            advice=f"did you mean {close}?" if close else "the variables are listed in docs/settings.md",
        )


# What is installed -----------------------------------------------------------------------------------------------------


def _installation() -> Iterator[Finding]:
    versions = {"python": platform.python_version(), **{name: _version(name) for name in _FOUNDATIONS}}
    yield Finding(
        check="settings",
        state="ok",
        found=", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items()),
        facts={"versions": versions},
    )
    integrations = [
        point for point in importlib.metadata.entry_points(group=_GROUP) if point.name.startswith(_OURS) and point.dist
    ]
    if not integrations:
        yield Finding(
            check="settings",
            state="warning",
            found="no integration with a framework is installed: only ragspan.capture and records of your own are scored",
            advice="pip install 'ragspan[langchain]' or 'ragspan[llama-index]'",
        )
    for point in sorted(integrations, key=lambda point: point.name):
        yield _integration(point)


def _integration(point: importlib.metadata.EntryPoint) -> Finding:
    assert point.dist is not None  # noqa: S101 - chosen by it; for mypy
    distribution = point.dist
    frameworks = {name: _version(name) for name in _frameworks(distribution.requires or ())}
    present = ", ".join(f"{name} {version or 'is not installed'}" for name, version in frameworks.items())
    found = f"{distribution.name} {distribution.version}" + (f" for {present}" if present else "")
    conflict = _conflict(distribution)
    disabled = point.name in _disabled()
    advice = None
    if conflict:
        advice = f"it does not fit what is installed, and opentelemetry-instrument leaves it out: {conflict}"
    elif disabled:
        advice = f"opentelemetry-instrument leaves it out: OTEL_PYTHON_DISABLED_INSTRUMENTATIONS names {point.name}"
    return Finding(
        check="settings",
        state="warning" if advice else "ok",
        found=found,
        advice=advice,
        facts={"integration": point.name, "version": distribution.version, "frameworks": frameworks},
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _frameworks(requirements: Sequence[str]) -> list[str]:
    """What the extra `instruments` names, by which instrumentors tell what they instrument."""
    return [match[1] for match in map(_REQUIREMENT.match, requirements) if match]


def _conflict(distribution: importlib.metadata.Distribution) -> str | None:
    """The same test as `opentelemetry-instrument` makes before it loads an instrumentor."""
    try:
        from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts
    except ImportError:
        return None
    conflict = get_dist_dependency_conflicts(distribution)
    return None if conflict is None else str(conflict)


def _disabled() -> list[str]:
    names = variable("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS") or ""
    return [name.strip() for name in names.split(",")]
