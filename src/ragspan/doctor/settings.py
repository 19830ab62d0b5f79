"""The first check: what `RAGSPAN_*` says, and what is installed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ragspan.addresses import shown_url
from ragspan.config import Settings, names_by_field, unknown_names
from ragspan.doctor.findings import Finding
from ragspan.doctor.installation import examine_installation
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord
from ragspan.redaction import RedactionError, redact_from, redacted


def read_settings() -> tuple[Settings | None, list[Finding]]:
    """The settings, None if they cannot be used, and what there is to say about them."""
    try:
        settings = Settings.from_environment()
    except ConfigurationError as error:
        wrong = Finding(check="settings", state="failed", found=str(error), is_misuse=True)
        return None, [wrong, *_unknown(), *examine_installation()]
    return settings, [*_known(settings), *_unknown(), *examine_installation()]


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
