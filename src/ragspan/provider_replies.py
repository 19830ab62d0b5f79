"""Reads a provider's facts about its reply: the model, the reason of its end and the tokens, under any name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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
    """Search the raw reply, and everything else that a framework keeps of it: mappings, or a provider's objects."""
    places = [place for part in reply for place in _places(part)]
    return ReplyFacts(
        response_model=_first(str, places, ("model_name", "model")),
        finish_reason=_first(str, places, _REASONS),
        input_tokens=_first(int, places, _INPUT),
        output_tokens=_first(int, places, _OUTPUT),
        cached_tokens=_first(int, places, _CACHED),
        response_id=_first(str, places, ("id", "response_id")),
    )


def _places(part: Any) -> Iterator[Any]:
    """The reply itself, its usage, and its first choice; None for what it does not have."""
    if part is None or isinstance(part, str):
        return
    yield part
    for name in ("usage", "usage_metadata", "token_usage"):
        usage = _get(part, name)
        yield usage
        yield from (_get(usage, f"{which}_details") for which in ("input_token", "prompt_tokens", "input_tokens"))
    yield _get(part, "input_token_details")  # a framework's own record of usage
    for name in ("choices", "candidates"):
        choices = _get(part, name)
        if isinstance(choices, (list, tuple)) and choices:
            yield choices[0]


def _first(kind: type[Any], places: Iterable[Any], names: Iterable[str]) -> Any:
    found = (_get(place, name) for name in names for place in places)
    return next((value for value in found if isinstance(value, kind) and not isinstance(value, bool) and value), None)


def _get(place: Any, name: str) -> Any:
    if isinstance(place, Mapping):
        return place.get(name)
    try:
        return getattr(place, name, None)
    except Exception:  # noqa: BLE001  a provider's own object
        return None
