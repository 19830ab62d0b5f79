"""Runs the application's `redact` function (`RAGSPAN_REDACT`) over all text of records, and of what metrics say of them.

Left as they are: numbers, spans, and those fields of ragspan's own classes that say which thing something is or hold words of
ragspan's own. All else is text: every other field, every field of other people's classes, and metadata with their keys. If the
function fails, the text does not leave the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from ragspan.arguments import with_article, wrong
from ragspan.config import variable
from ragspan.engine.record_queue import Item
from ragspan.engine.stats import Dropped, DropReason
from ragspan.engine.threads import DaemonThreads, call_guarded
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord, SpanAnchor
from ragspan.safe_copy import class_name, plain_scalar, text_keyed
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog

Redact: TypeAlias = Callable[[str], str]
"""Takes a text and returns the text that may leave the process."""
RedactOption: TypeAlias = Redact | str | Literal[False] | None
"""A function, or its `module:function`; None reads `RAGSPAN_REDACT`, and False redacts nothing."""

_T = TypeVar("_T", RagRecord, Outcome)

_VARIABLE: Final = "RAGSPAN_REDACT"
_OPTION: Final = f"redact ({_VARIABLE})"  # it may be given as either
_IDENTITY: Final = frozenset(
    (
        *("record_id", "run_id", "framework", "name", "swallowed_errors", "id", "data_source_id", "tool_name", "role"),
        *("tool_call_id", "call_id", "model", "provider", "response_id", "response_model", "finish_reason", "type"),
        *("judge", "prompt_version", "search", "step", "status", "contexts_unknown", "kind", "label", "verdict"),
        *("reason", "fallback", "error_type"),
    )
)
"""Fields of ragspan's classes that hold no text."""


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
    given = variable(_VARIABLE) if given is None else given
    if given is None or given is False:
        return None
    what, found = "redact", cast("object", given)
    if isinstance(given, str):
        module, _, function = given.partition(":")
        if not (module and function):
            raise wrong(_OPTION, given, "module:function, such as 'privacy:mask'")
        try:
            found = getattr(importlib.import_module(module), function)
        except (Exception, SystemExit) as error:  # the application's module may raise anything
            why = f"{type(error).__name__}: {error}"
            raise ConfigurationError(f"{_OPTION} is {given!r}, which cannot be imported: {why}") from error
        what = f"{_OPTION} is {given!r}, which"
    if not callable(found) or inspect.iscoroutinefunction(found):
        kind = "an async function" if callable(found) else f"of type {type(found).__name__}"
        raise ConfigurationError(f"{what} is {kind}, but should be a function that takes a text and returns one")
    return cast("Redact", found)


def redacted(record: _T, redact: Redact) -> _T:
    """The record, or the outcome, with redacted texts; equal texts stay equal. Metadata becomes plain data.

    Raises:
        RedactionError: the function failed.
    """
    known = {"": ""}

    def over_text(text: str) -> str:
        if text not in known:
            made: object = redact(text)
            if not isinstance(made, str):
                raise RedactionError(f"it returned {with_article(type(made).__name__)}, not a str")
            known[text] = made
        return known[text]

    try:
        return cast("_T", _over(record, over_text))
    except RedactionError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the application's function, and objects in evidence
        raise RedactionError(type(error).__name__) from None


def withheld(outcome: Outcome) -> Outcome:
    """The outcome without the texts that could not be redacted."""
    if isinstance(outcome, Score):
        return replace(outcome, explanation=None, evidence=())
    if isinstance(outcome, NotApplicable):
        return replace(outcome, detail=None)
    return replace(outcome, message="the message could not be redacted")


def _over(value: Any, redact: Redact) -> Any:
    """The value with its texts redacted; what is not of ragspan's classes becomes plain data."""
    if value is None or isinstance(value, (bool, int, float, SpanAnchor)):
        return value
    if isinstance(value, str):
        return redact(str.__str__(value))
    if isinstance(value, (tuple, list)):
        return tuple([_over(item, redact) for item in value])
    if isinstance(value, dict):
        return {redact(key): _over(item, redact) for key, item in text_keyed(value).items()}
    if not is_dataclass(value) or isinstance(value, type):
        return redact(str(plain_scalar(value) or class_name(type(value))))
    names = [field.name for field in fields(value) if field.init and field.name not in _identity_of(type(value))]
    return replace(value, **{name: _over(getattr(value, name), redact) for name in names})


@functools.cache
def _identity_of(kind: type) -> frozenset[str]:
    """The fields of this class that it has from ragspan's classes, of those that hold no text."""
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "ragspan" and is_dataclass(base)]
    return _IDENTITY & {field.name for base in bases for field in fields(base)}


class Redaction:
    """The redaction of one engine or sink, in one daemon thread, one text after the other: it need not be safe for threads.

    Without `redact` nothing changes and nothing is waited for; `timeout` is the seconds that one record, or one outcome, may take.
    """

    def __init__(self, redact: Redact | None, *, timeout: float, log: ThrottledLog) -> None:
        self._redact = redact
        self._timeout = timeout
        self._log = log
        self._thread = DaemonThreads(1, name="ragspan-redact")  # is started by the first text

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    async def redacted_record(self, item: Item) -> RagRecord | Dropped | None:
        """The record that the item's capture becomes, redacted, or why it becomes none; None if the item is out already."""
        record, error = call_guarded(item.capture.to_record)
        if error is None and record is None:
            return Dropped(reason="nothing_to_score")
        if not isinstance(record, RagRecord):
            kind = type(record if error is None else error).__name__
            return self._dropped("capture_error", "a capture could not be made a record: %s", kind)
        if self._redact is not None and not isinstance(item.capture, RedactedRecord):
            record, why = await self._run(redacted, record, self._redact)
            if record is None:
                return self._dropped("redaction_failed", "a record is dropped, because redact failed: %s", why)
        return None if item.is_out else record

    async def outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with its explanations redacted, or without them."""
        if self._redact is None:
            return outcome
        made, _ = await self._run(redacted, outcome, self._redact)
        return withheld(outcome) if made is None else made

    async def _run(self, call: Callable[[_T, Redact], _T], value: _T, redact: Redact) -> tuple[_T | None, str]:
        """What the call makes of the value in the thread; or None, and why."""
        with suppressed():
            context = contextvars.copy_context()
        try:
            calling = self._thread.submit(context.run, call_guarded, call, value, redact)
            made, error = await asyncio.wait_for(asyncio.wrap_future(calling), self._timeout)
        except asyncio.TimeoutError:
            return None, f"it took longer than {self._timeout:g} s"
        except RuntimeError:
            return None, "no thread can be started"
        return made, str(error) if isinstance(error, RedactionError) else type(error).__name__

    def _dropped(self, reason: DropReason, message: str, why: str) -> Dropped:
        self._log.report(reason, message, why)
        return Dropped(reason=reason)
