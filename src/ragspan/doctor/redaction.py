"""Keeps keys and the values of headers out of what the doctor says.

Everything that is shown or written goes through here, whoever worded it: messages of servers and libraries may repeat
what was sent to them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from ragspan.addresses import secrets_in_url
from ragspan.config import Settings, names_by_field, variable
from ragspan.doctor.findings import Finding

_SHORTEST_SECRET = 6  # shorter values (experiment numbers, tenants) are no secrets, and would be found in any word
_LONGEST_TEXT = 600
_KEY = re.compile(r"\bsk-[\w*-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HEADER_VARIABLES = (
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
)
_URL_VARIABLES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OPENAI_BASE_URL",
    names_by_field()["judge_base_url"],
    *(name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in (proxy, proxy.lower())),
)


class Redactor:
    """Knows the secrets of this environment, and takes them out of texts."""

    def __init__(self) -> None:
        found = {secret for secret in _secrets() if len(secret) >= _SHORTEST_SECRET}
        self._secrets = sorted(found, key=len, reverse=True)  # a secret may be a part of another

    def text(self, words: str) -> str:
        """The words without secrets, without control characters, and not too long."""
        for secret in self._secrets:
            words = words.replace(secret, "[secret]")
        words = _CONTROL.sub(" ", _KEY.sub("[secret]", words))
        return words if len(words) <= _LONGEST_TEXT else words[: _LONGEST_TEXT - 1] + "…"

    def finding(self, finding: Finding) -> Finding:
        return dataclasses.replace(
            finding,
            found=self.text(finding.found),
            advice=None if finding.advice is None else self.text(finding.advice),
            facts={name: self._fact(value) for name, value in finding.facts.items()},
        )

    def _fact(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {str(key): self._fact(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self._fact(item) for item in value]
        return value


def header_names(text: str | None) -> list[str]:
    """The names in a `name=value,name=value` list of headers."""
    pairs = [pair.partition("=") for pair in (text or "").split(",")]
    return [name.strip().lower() for name, equals, _ in pairs if equals and name.strip()]


def _secrets() -> Iterator[str]:
    for name in _secret_variables():
        yield variable(name) or ""
    for name in _HEADER_VARIABLES:
        yield from _secrets_in_headers(variable(name) or "")
    for name in _URL_VARIABLES:
        yield from secrets_in_url(variable(name) or "")


def _secret_variables() -> Iterable[str]:
    """Those of ours that `repr` does not show, and the key of the `openai` client."""
    names = names_by_field()
    ours = [names[field.name] for field in dataclasses.fields(Settings) if not field.repr and field.name in names]
    return ["OPENAI_API_KEY", *ours]


def _secrets_in_headers(text: str) -> Iterator[str]:
    for pair in text.split(","):
        value = pair.partition("=")[2].strip() or pair.strip()
        for spelling in (value, unquote(value)):
            yield spelling
            yield spelling.rpartition(" ")[2]  # the token of "Bearer token"
