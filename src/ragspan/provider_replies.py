"""Reads a provider's facts about its reply: the model, the reason of its end and the tokens, under any name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ragspan.plain_data import fields_of, in_slot, is_dict, items_of, plain_scalar, text_keyed

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
_CACHED = ("cache_read", "cached_tokens", "cache_read_input_tokens", "cached_content_token_count")
_REASONS = ("finish_reason", "stop_reason", "done_reason")


class ReplyFacts(NamedTuple):
    """A provider's facts about a reply; the fields are those of a `Generation`."""

    response_model: str | None
    finish_reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    """Those of the input that the provider read from its cache."""
    response_id: str | None


def facts_of(reply: Iterable[Any]) -> ReplyFacts:
    """Search the raw reply, and everything else that a framework keeps of it: dictionaries, a provider's objects, or their notes."""
    places = [place for part in reply for place in _places(part)]
    return ReplyFacts(
        response_model=_first(str, places, ("model_name", "model")),
        finish_reason=_first(str, places, _REASONS),
        input_tokens=_first(int, places, _INPUT),
        output_tokens=_first(int, places, _OUTPUT),
        cached_tokens=_first(int, places, _CACHED),
        response_id=_first(str, places, ("id", "response_id")),
    )


def notes_of(reply: Iterable[Any]) -> tuple[Mapping[str, Any], ...]:
    """The entries of the raw reply that `facts_of` reads, as plain data: for the request path, which keeps nothing else of it."""
    return tuple(notes for part in reply for place in _places(part) if (notes := _noted(place)))


def _places(part: Any) -> Iterator[Mapping[str, Any]]:
    """The fields of the reply itself, of its usage, and of its first choice. No code of its classes runs."""
    own = _fields(part)
    if not own:
        return
    yield own
    for name in ("usage", "usage_metadata", "token_usage"):
        if usage := _fields(own.get(name)):
            yield usage
            yield from (
                _fields(usage.get(f"{which}_details")) for which in ("input_token", "prompt_tokens", "input_tokens")
            )
    yield _fields(own.get("input_token_details"))  # a framework's own record of usage
    for name in ("choices", "candidates"):
        choices = own.get(name)
        if choices is not None and (items := items_of(choices)):
            yield _fields(items[0])


def _fields(value: Any) -> Mapping[str, Any]:
    """The entries of a dictionary, or the attributes that an object keeps."""
    if value is None or type(value) is str:
        return _NOTHING
    if is_dict(value):
        return text_keyed(value)
    more = in_slot(value, "__pydantic_extra__")  # what a client's model has no field for
    return {**fields_of(value), **text_keyed(more)} if more is not None and is_dict(more) else fields_of(value)


_NOTHING: Mapping[str, Any] = {}
_NAMES = frozenset((*_INPUT, *_OUTPUT, *_CACHED, *_REASONS, *("model_name", "model", "id", "response_id")))


def _noted(place: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: plain for name in _NAMES.intersection(place) if (plain := plain_scalar(place[name])) is not None}


def _first(kind: type[Any], places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Any:
    found = (plain_scalar(place.get(name)) for name in names for place in places)
    return next((value for value in found if type(value) is kind and value), None)
