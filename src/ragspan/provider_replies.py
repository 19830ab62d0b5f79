"""Reads a provider's facts about its reply, under any name: the model, the end, the tokens, and whether it searched by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ragspan.safe_copy import fields_of, in_slot, is_dict, items_of, plain_scalar, text_keyed, text_of

_T = TypeVar("_T")
_MODEL: Final = ("model_name", "model")
_ID: Final = ("id", "response_id")
_REASONS: Final = ("finish_reason", "stop_reason", "done_reason")
_INPUT: Final = (
    *("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count"),
    *("inputTokens", "promptTokenCount"),
)
_OUTPUT: Final = (
    *("completion_tokens", "output_tokens", "candidates_token_count", "eval_count"),
    *("outputTokens", "candidatesTokenCount"),
)
_TOTAL: Final = ("total_tokens", "total_token_count", "totalTokens", "totalTokenCount")
_CACHED: Final = (
    *("cache_read", "cached_tokens", "cache_read_input_tokens", "cached_content_token_count"),
    *("prompt_cache_hit_tokens", "num_cached_tokens", "cacheReadInputTokens", "cachedContentTokenCount"),
)
_COST: Final = ("cost", "total_cost", "estimated_cost", "response_cost")
"""US dollars: OpenRouter, Perplexity (in an object of its own), DeepInfra, LiteLLM."""
_NOTED: Final = frozenset((*_INPUT, *_OUTPUT, *_CACHED, *_REASONS, *_MODEL, *_ID))
_DETAILS: Final = ("input_token_details", "prompt_tokens_details", "input_tokens_details")
_USAGE: Final = ("usage", "usage_metadata", "usageMetadata", "token_usage", "input_token_details")
_CHOICES: Final = ("choices", "candidates")
_WITH_PLACES: Final = frozenset((*_USAGE, *_CHOICES))


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
        response_model=_first(text_of, places, _MODEL),
        finish_reason=_first(text_of, places, _REASONS),
        input_tokens=_first(_count, places, _INPUT),
        output_tokens=_first(_count, places, _OUTPUT),
        cached_tokens=_first(_count, places, _CACHED),
        response_id=_first(text_of, places, _ID),
    )


def total_tokens_of(reply: Iterable[Any]) -> int | None:
    """All tokens of the reply, where the provider sums them up; `notes_of` does not keep them."""
    return _first(_count, [place for part in reply for place in _places(part)], _TOTAL)


def cost_of(reply: Iterable[Any]) -> float | None:
    """What the provider charges for the reply in US dollars, where its usage says it; `notes_of` does not keep it."""
    usages = [fields_in(own[name]) for own in map(fields_in, reply) for name in _USAGE if name in own]
    return _first(_amount, [*usages, *(fields_in(usage.get("cost")) for usage in usages)], _COST)


def notes_of(reply: Iterable[Any]) -> Sequence[Mapping[str, Any]]:
    """The entries of the raw reply that `facts_of` reads, as plain data: for the request path, which keeps nothing else of it."""
    notes: list[Mapping[str, Any]] = []
    for part in reply:
        if part is not None and (type(part) is not dict or part):
            for place in _places(part):
                if names := _NOTED.intersection(place):
                    plain = {name: found for name in names if (found := plain_scalar(place[name])) is not None}
                    notes.append(plain)
    return notes


def _places(part: Any) -> Sequence[Mapping[str, Any]]:
    """The fields of the reply itself, of its usage, and of its first choice. No code of its classes runs."""
    own = fields_in(part)
    places = [own]
    if _WITH_PLACES.isdisjoint(own):
        return places
    for name in _USAGE:
        if name in own:
            usage = fields_in(own[name])
            places.append(usage)
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


def _first(read: Callable[[Any], _T | None], places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> _T | None:
    """The first value that can be read so, and is not empty or zero."""
    found = (read(plain_scalar(place[name])) for name in names for place in places if name in place)
    return next(filter(None, found), None)


def _count(value: object) -> int | None:
    """A number of tokens, which some servers write as a text or with decimals."""
    return round(_amount(value) or 0) or None


def _amount(value: object) -> float | None:
    """A number above 0, also as a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if 0 < amount < math.inf else None


# Searches of the provider's own: what they found stands in no prompt

_FOUND: Final = ("grounding_metadata", "search_results", "tool_outputs", "executed_tools", "built_in_tool_calls")
_NOTES: Final = ("annotations", "citations")
_HELD: Final = ("content", "output", "choices", "message")
_NAMES: Final = frozenset((*_FOUND, *_NOTES, *_HELD))
_CITING: Final = frozenset({"url_citation", "file_citation", "web_search_result_location"})
_SEARCHING: Final = frozenset(
    {"web_search_call", "file_search_call", "mcp_call", "web_search_tool_result", "web_fetch_tool_result"}
)
_MAX_ITEMS: Final = 1000
_MAX_DEPTH: Final = 3  # the message of the first choice of a raw reply has blocks


def reports_search(reply: Iterable[Any]) -> bool:
    """Whether a reply, or what came with it, shows that the provider searched.

    Args:
        reply: the raw reply or a message, what stands beside its text, or a list of blocks; plain data or a provider's objects.
    """
    for part in reply:  # noqa: SIM110  on the request path, where there is mostly nothing, a generator costs most
        if part is not None and (type(part) is not dict or part) and _reports(part, 0):
            return True
    return False


def _reports(part: Any, depth: int) -> bool:
    if part is None or type(part) is str or depth > _MAX_DEPTH:
        return False
    items = None if type(part) is dict else items_of(part)
    if items is not None:
        return any(_reports(item, depth + 1) for item in items[:_MAX_ITEMS])
    own = fields_in(part)
    kind, name = text_of(own.get("type")) or "", text_of(own.get("name")) or ""
    is_search = "search" in name or "fetch" in name or "mcp" in kind
    if kind in _SEARCHING or (is_search and kind.startswith(("server_tool", "mcp_"))):
        return True
    if _NAMES.isdisjoint(own):
        return False
    for found in map(own.get, _FOUND):
        if found is not None and (not any(type(found) is one for one in (bool, str, list, dict)) or bool(found)):
            return True
    notes = (note for name in _NOTES for note in (items_of(own.get(name)) or ())[:_MAX_ITEMS])
    return any(map(_cites, notes)) or any(_reports(own.get(name), depth + 1) for name in _HELD)


def _cites(note: Any) -> bool:
    """Whether a note names a page or a file; others name documents that stand in the prompt."""
    if type(note) is str:
        return True
    own = fields_in(note)
    return text_of(own.get("type")) in _CITING or bool(text_of(own.get("url")))
