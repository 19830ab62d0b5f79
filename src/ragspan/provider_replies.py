"""Reads a provider's facts about its reply: the model, the reason of its end and the tokens, under any name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ragspan.plain_data import fields_of, in_slot, is_dict, items_of, plain_scalar, text_keyed

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count", "inputTokens", "promptTokenCount")
_OUTPUT = (
    *("completion_tokens", "output_tokens", "candidates_token_count", "eval_count"),
    *("outputTokens", "candidatesTokenCount"),
)
_TOTAL = ("total_tokens", "total_token_count", "totalTokens", "totalTokenCount")
_CACHED = (
    *("cache_read", "cached_tokens", "cache_read_input_tokens", "cached_content_token_count"),
    *("prompt_cache_hit_tokens", "num_cached_tokens", "cacheReadInputTokens", "cachedContentTokenCount"),
)
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


def total_tokens_of(reply: Iterable[Any]) -> int | None:
    """All tokens of the reply, where the provider sums them up; `notes_of` does not keep them."""
    found: int | None = _first(int, [place for part in reply for place in _places(part)], _TOTAL)
    return found


def notes_of(reply: Iterable[Any]) -> Sequence[Mapping[str, Any]]:
    """The entries of the raw reply that `facts_of` reads, as plain data: for the request path, which keeps nothing else of it."""
    notes: list[Mapping[str, Any]] = []
    for part in reply:
        if part is not None and (type(part) is not dict or part):
            notes += _noted(part)
    return notes


def _noted(part: Any) -> Iterator[Mapping[str, Any]]:
    for place in _places(part):
        if names := _NAMES.intersection(place):
            yield {name: plain for name in names if (plain := plain_scalar(place[name])) is not None}


def _places(part: Any) -> Sequence[Mapping[str, Any]]:
    """The fields of the reply itself, of its usage, and of its first choice. No code of its classes runs."""
    own = fields_in(part)
    places = [own]
    if _WITH_PLACES.isdisjoint(own):
        return places
    for name in _USAGE:
        if name in own:
            places.append(usage := fields_in(own[name]))
            places += [fields_in(usage[details]) for details in _DETAILS if details in usage]
    for name in _CHOICES:
        if name in own and (items := items_of(own[name])):
            places.append(fields_in(items[0]))
    return places


def fields_in(value: Any) -> Mapping[str, Any]:
    """The entries of a dictionary, or the attributes that an object keeps."""
    kind = type(value)
    if kind is dict or issubclass(kind, dict):
        return text_keyed(value)
    if value is None or kind is str:
        return {}
    more = in_slot(value, "__pydantic_extra__")  # what a client's model has no field for
    fields = text_keyed(fields_of(value))
    return fields if more is None or not is_dict(more) else {**fields, **text_keyed(more)}


_DETAILS: Final = ("input_token_details", "prompt_tokens_details", "input_tokens_details")
_USAGE: Final = (
    "usage",
    "usage_metadata",
    "usageMetadata",
    "token_usage",
    _DETAILS[0],
)  # the last in a framework's own record of usage
_CHOICES: Final = ("choices", "candidates")
_WITH_PLACES: Final = frozenset((*_USAGE, *_CHOICES))
_NAMES = frozenset((*_INPUT, *_OUTPUT, *_CACHED, *_REASONS, *("model_name", "model", "id", "response_id")))


def _first(kind: type[Any], places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Any:
    found = (plain_scalar(place.get(name)) for name in names for place in places)
    return next((value for value in found if type(value) is kind and value), None)
