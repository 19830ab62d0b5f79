"""Runs the application's `redact` function (`RAGSPAN_REDACT`) over all text of a record and of its outcomes.

The function gets every text but ids of documents and records, and names of steps, models and error types. If it fails, the
text does not leave the process.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

from ragspan.config import FUNCTION_NAME, variable
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.record_json import plain
from ragspan.records import RagRecord, SpanAnchor

Redact: TypeAlias = Callable[[str], str]
"""Takes a text and returns the text that may leave the process."""
RedactOption: TypeAlias = Redact | str | Literal[False] | None
"""A function, or its `module:function`; None reads `RAGSPAN_REDACT`, and False redacts nothing."""

_T = TypeVar("_T")

_VARIABLE = "RAGSPAN_REDACT"
_ALLOWED = "a function that takes a text and returns one"
_NOT_TEXT = frozenset(
    (
        *("id", "record_id", "response_id", "call_id", "tool_call_id", "data_source_id"),
        *("name", "tool_name", "framework", "provider", "model", "response_model", "search", "step"),
        *("status", "error_type", "swallowed_errors", "type", "role", "finish_reason"),
        *("judge", "prompt_version", "label", "kind", "reason", "fallback", "verdict", "contexts_unknown"),
    )
)
"""Fields without users' words; every other text is redacted."""


class RedactionError(RagspanError):
    """The application's function raised, or returned no text. The message does not quote its argument."""


@dataclass(frozen=True, slots=True)
class RedactedRecord:
    """A capture with redacted texts: the engine redacts only the outcomes of its metrics."""

    record: RagRecord

    @property
    def size_hint(self) -> int:
        return self.record.size_hint

    def to_record(self) -> RagRecord:
        return self.record


def redact_from(given: RedactOption) -> Redact | None:
    """The function of this option; None if nothing is redacted.

    Raises:
        ConfigurationError: it is not such a function, or cannot be imported.
    """
    if given is False:
        return None
    if given is None:
        name = variable(_VARIABLE)
        return None if name is None else _imported(name)
    if isinstance(given, str):
        return _imported(given)
    return _checked("redact", given)


def redacted(record: RagRecord, redact: Redact) -> RagRecord:
    """The record with redacted texts; equal texts stay equal. Metadata becomes plain data.

    Raises:
        RedactionError: the function failed.
    """
    return _run(record, redact)


def redacted_outcome(outcome: Outcome, redact: Redact) -> Outcome:
    """The outcome with redacted explanations; if that fails, without them."""
    try:
        return _run(outcome, redact)
    except RedactionError:
        if isinstance(outcome, Score):
            return replace(outcome, explanation=None, evidence=())
        if isinstance(outcome, NotApplicable):
            return replace(outcome, detail=None)
        return replace(outcome, message="the message could not be redacted")


def withhold(text: str) -> str:  # noqa: ARG001 - the application's function has it
    """Always fails, so that explanations are left out in a process without the real function."""
    raise RedactionError("the function is in another process")


def _run(value: _T, redact: Redact) -> _T:
    try:
        return cast("_T", _Pass(redact).over(value))
    except RedactionError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the application's function, and objects in evidence
        raise RedactionError(type(error).__name__) from None


class _Pass:
    """Redacts one record or outcome."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._known: dict[str, str] = {}

    def over(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, SpanAnchor)):
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value) if field.init and field.name not in _NOT_TEXT]
            return replace(value, **{name: self.over(getattr(value, name)) for name in names})
        if isinstance(value, tuple):
            return tuple(map(self.over, value))
        return self._plain(plain(value))

    def _plain(self, value: Any) -> Any:
        """A value of JSON's types."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(key): self._plain(item) for key, item in value.items()}
        return [*map(self._plain, value)] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        if not text:
            return text
        if text not in self._known:
            made: object = self._redact(text)
            if not isinstance(made, str):
                raise RedactionError(f"it returned a {type(made).__name__}, not a str")
            self._known[text] = made
        return self._known[text]


def _imported(name: str) -> Redact:
    FUNCTION_NAME.check(_VARIABLE, name)
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as error:  # the application's module may raise anything
        raise ConfigurationError(
            f"{_VARIABLE} is {name!r}, but {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if found is None:
        raise ConfigurationError(f"{_VARIABLE} is {name!r}, but {module} has no {function}")
    return _checked(f"{_VARIABLE} is {name!r}, which", found)


def _checked(what: str, found: object) -> Redact:
    if inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None)):  # noqa: B004
        raise ConfigurationError(f"{what} is an async function, but should be {_ALLOWED}")
    if not callable(found):
        raise ConfigurationError(f"{what} is of type {type(found).__name__}, but should be {_ALLOWED}")
    return cast("Redact", found)
