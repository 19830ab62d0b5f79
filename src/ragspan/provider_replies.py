"""Reads a provider's facts about its reply: the model, the reason of its end and the tokens, under any name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ragspan.safe_copy import fields_of, in_slot, is_dict, items_of, plain_scalar, text_keyed

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
_COST: Final = ("cost", "total_cost", "estimated_cost", "response_cost")
"""US dollars: OpenRouter, Perplexity (in an object of its own), DeepInfra, LiteLLM."""
_T = TypeVar("_T")


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
        response_model=_first(_text, places, ("model_name", "model")),
        finish_reason=_first(_text, places, _REASONS),
        input_tokens=_first(_count, places, _INPUT),
        output_tokens=_first(_count, places, _OUTPUT),
        cached_tokens=_first(_count, places, _CACHED),
        response_id=_first(_text, places, ("id", "response_id")),
    )


def total_tokens_of(reply: Iterable[Any]) -> int | None:
    """All tokens of the reply, where the provider sums them up; `notes_of` does not keep them."""
    return _first(_count, [place for part in reply for place in _places(part)], _TOTAL)


def cost_of(reply: Iterable[Any]) -> float | None:
    """What the provider charges for the reply in US dollars, where its usage says it; `notes_of` does not keep it."""
    usages = [usage for part in reply for usage in _usages_in(fields_in(part))]
    costs = [*usages, *(fields_in(usage["cost"]) for usage in usages if "cost" in usage)]
    cost = _first(_amount, costs, _COST)
    if cost is not None and any(usage.get("is_byok") is True for usage in usages):
        # This is OpenRouter's fee; the user's own provider charges the rest.
        details = [fields_in(usage.get("cost_details")) for usage in usages]
        cost += _first(_amount, details, ("upstream_inference_cost",)) or 0
    return cost


def notes_of(reply: Iterable[Any]) -> Sequence[Mapping[str, Any]]:
    """The entries of the raw reply that `facts_of` reads, as plain data: for the request path, which keeps nothing else of it."""
    notes: list[Mapping[str, Any]] = []
    for part in reply:
        if part is not None and (type(part) is not dict or part):
            for place in _places(part):
                if names := _NAMES.intersection(place):
                    plain = {name: found for name in names if (found := plain_scalar(place[name])) is not None}
                    notes.append(plain)
    return notes


def _places(part: Any) -> Sequence[Mapping[str, Any]]:
    """The fields of the reply itself, of its usage, and of its first choice. No code of its classes runs."""
    own = fields_in(part)
    places = [own]
    if _WITH_PLACES.isdisjoint(own):
        return places
    for usage in _usages_in(own):
        places.append(usage)
        places += [fields_in(usage[details]) for details in _DETAILS if details in usage]
    for name in _CHOICES:
        if name in own and (items := items_of(own[name])):
            places.append(fields_in(items[0]))
    return places


def _usages_in(own: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The records of usage of a reply: its own, and in a stream those of Groq and of the last choice (Moonshot)."""
    for name in _USAGE:
        if name in own:
            yield fields_in(own[name])
    if _GROQ in own:
        yield from _usages_in(fields_in(own[_GROQ]))
    if "choices" in own and (items := items_of(own["choices"])) and "usage" in (choice := fields_in(items[0])):
        yield fields_in(choice["usage"])


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
)  # the last in a framework's own
_CHOICES: Final = ("choices", "candidates")
_GROQ: Final = "x_groq"
_WITH_PLACES: Final = frozenset((*_USAGE, *_CHOICES, _GROQ))
_NAMES = frozenset((*_INPUT, *_OUTPUT, *_CACHED, *_REASONS, *("model_name", "model", "id", "response_id")))


def _first(read: Callable[[Any], _T | None], places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> _T | None:
    """The first value that can be read so, and is not empty or zero."""
    found = (read(plain_scalar(place[name])) for name in names for place in places if name in place)
    return next(filter(None, found), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    """A number of tokens, which some servers write as a text or with decimals."""
    if type(value) is int:
        return value if value > 0 else None
    amount = _amount(value)
    return None if amount is None else round(amount)


def _amount(value: object) -> float | None:
    """A number above 0, also as a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if 0 < amount < math.inf else None
