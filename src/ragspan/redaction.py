"""Runs the application's `redact` function (`RAGSPAN_REDACT`) over all text of a record and of its outcomes.

What is text, and what is identity, is decided here and nowhere else:

- Identity says which thing something is, and stays as it is: the fields in `_IDENTITY` of ragspan's own classes, all numbers and
  spans, and words that ragspan itself has chosen, which are those in a field's `Literal` and in `_OWN_WORDS`.
- All else is text and is redacted: every other field of ragspan's classes, every field of the classes of other people, whatever
  its name is, and metadata with their keys.

If the function fails, the text does not leave the process.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from ragspan.arguments import with_article
from ragspan.config import FUNCTION_NAME, variable
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.record_json import plain, unused_key
from ragspan.records import RagRecord, SpanAnchor

Redact: TypeAlias = Callable[[str], str]
"""Takes a text and returns the text that may leave the process."""
RedactOption: TypeAlias = Redact | str | Literal[False] | None
"""A function, or its `module:function`; None reads `RAGSPAN_REDACT`, and False redacts nothing."""

_T = TypeVar("_T")

_VARIABLE = "RAGSPAN_REDACT"
_ALLOWED = "a function that takes a text and returns one"
_IDENTITY: Mapping[str, str] = {
    "RagRecord": "record_id run_id framework name error_type swallowed_errors",
    "RetrievedContext": "id",
    "Retrieval": "name error_type data_source_id tool_name tool_call_id",
    "Reranking": "name model error_type",
    "Generation": "model provider finish_reason error_type response_id response_model",
    "ToolCall": "name call_id error_type",
    "Message": "role tool_call_id",
    "ToolRequest": "name id",
    "ErrorReport": "type",
    "Score": "judge prompt_version",
    "Cause": "search step",
    "JudgedContext": "id",
}
"""By the name of a class of ragspan's: its fields that are identity."""
_OWN_WORDS: Mapping[str, frozenset[str]] = {
    "reason": frozenset(
        (
            *("answer_aborted", "answer_error", "interrupted", "not_from_a_model", "no_response", "no_question"),
            *("contexts_unknown", "no_contexts", "no_claims", "no_citations", "cannot_tell", "refusal"),
            *("too_many_contexts", "language"),
            *("not_sampled", "not_asked", "judge_when", "not_exported", "budget_exhausted"),
        )
    ),
    "fallback": frozenset({"budget_exhausted"}),
}
"""By the name of a field of ragspan's: what it says where ragspan fills it. A metric of the application's may say anything."""
_TYPE_NAME = re.compile(r"[A-Za-z_][\w.]{0,99}")
"""What the type of a `MetricFailure` is, unless a metric of the application's puts a text there."""


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
    given = variable(_VARIABLE) if given is None else given
    what: str = "redact"
    found: object = given
    if isinstance(given, str):
        what, found = f"{_VARIABLE} is {given!r}, which", _imported(given)
    if found is None:
        return None
    if inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None)):  # noqa: B004
        raise ConfigurationError(f"{what} is an async function, but should be {_ALLOWED}")
    if not callable(found):
        raise ConfigurationError(f"{what} is of type {type(found).__name__}, but should be {_ALLOWED}")
    return cast("Redact", found)


def _imported(name: str) -> object:
    FUNCTION_NAME.check(_VARIABLE, name)
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function, None)
    except (Exception, SystemExit) as error:  # the application's module may raise anything
        raise ConfigurationError(
            f"{_VARIABLE} is {name!r}, but {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if found is None:
        raise ConfigurationError(f"{_VARIABLE} is {name!r}, but {module} has no {function}")
    return cast("object", found)


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
            is_own = _identity_of(NotApplicable)["reason"](outcome.reason)
            return replace(outcome, reason=outcome.reason if is_own else "not_redacted", detail=None)
        is_name = _TYPE_NAME.fullmatch(outcome.error_type)
        error_type = outcome.error_type if is_name else "not_redacted"
        return replace(outcome, error_type=error_type, message="the message could not be redacted")


def withhold(text: str) -> str:  # noqa: ARG001 - the application's function has it
    """Always fails, so that explanations are left out in a process without the real function."""
    raise RedactionError("the function is in another process")


def _run(value: _T, redact: Redact) -> _T:
    known = {"": ""}

    def over_text(text: str) -> str:
        if text not in known:
            made: object = redact(text)
            if not isinstance(made, str):
                raise RedactionError(f"it returned {with_article(type(made).__name__)}, not a str")
            known[text] = made
        return known[text]

    try:
        return cast("_T", _over(value, over_text))
    except RedactionError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the application's function, and objects in evidence
        raise RedactionError(type(error).__name__) from None


def _over(value: Any, redact: Redact) -> Any:
    """The value with its texts redacted; what is not of ragspan's classes becomes plain data."""
    if value is None or isinstance(value, (bool, int, float, SpanAnchor)):
        return value
    if isinstance(value, str):
        return redact(str.__str__(value))
    if isinstance(value, tuple):
        return tuple(_over(item, redact) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return _over_plain(plain(value), redact)
    identity = _identity_of(type(value))
    changed = {}
    for name in (field.name for field in fields(value) if field.init):
        given, is_identity = getattr(value, name), identity.get(name)
        texts = given if isinstance(given, tuple) else (given,)
        if is_identity is None or not all(isinstance(one, str) and is_identity(one) for one in texts):
            changed[name] = _over(given, redact)
    return replace(value, **changed)


def _over_plain(value: Any, redact: Redact) -> Any:
    if isinstance(value, dict):
        made: dict[str, Any] = {}
        for key, item in value.items():
            made[unused_key(redact(key), made)] = _over_plain(item, redact)
        return made
    return [_over_plain(item, redact) for item in value] if isinstance(value, list) else _over(value, redact)


@functools.cache
def _identity_of(kind: type) -> Mapping[str, Callable[[str], object]]:
    """By the name of a field of this class: which texts are identity there. It has them from the classes of ragspan's."""
    found: dict[str, Callable[[str], object]] = {}
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "ragspan" and is_dataclass(base):
            for name, hint in get_type_hints(base).items():
                found[name] = (_words_in(hint) | _OWN_WORDS.get(name, frozenset())).__contains__
            found |= dict.fromkeys(_IDENTITY.get(base.__name__, "").split(), lambda _: True)
    if issubclass(kind, MetricFailure):
        found["error_type"] = _TYPE_NAME.fullmatch
    return found


def _words_in(hint: object) -> frozenset[str]:
    """The texts that a type spells out."""
    parts = get_args(hint)
    own = frozenset(part for part in parts if isinstance(part, str)) if get_origin(hint) is Literal else frozenset()
    return own.union(*map(_words_in, () if own else parts))
