"""Whether a provider says with its reply that it searched by itself: what it found then stands in no prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ragspan.provider_replies import fields_in
from ragspan.safe_copy import items_of, text_of

_FOUND: Final = ("grounding_metadata", "search_results", "tool_outputs", "executed_tools", "built_in_tool_calls")
_NOTES: Final = ("annotations", "citations")
_HELD: Final = ("content", "output", "choices", "message")
_NAMES: Final = frozenset((*_FOUND, *_NOTES, *_HELD))
_CITING: Final = frozenset({"url_citation", "file_citation", "web_search_result_location", "search_result_location"})
_SEARCHING: Final = frozenset(
    {"web_search_call", "file_search_call", "mcp_call", "web_search_tool_result", "web_fetch_tool_result"}
)
_MAX_ITEMS = 1000
_MAX_DEPTH = 3  # the message of the first choice of a raw reply has blocks


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
    if not own or _is_search(own):
        return bool(own)
    if _NAMES.isdisjoint(own):
        return False
    if any(_is_given(own.get(name)) for name in _FOUND):
        return True
    notes = (note for name in _NOTES for note in (items_of(own.get(name)) or ())[:_MAX_ITEMS])
    return any(map(_cites, notes)) or any(_reports(own.get(name), depth + 1) for name in _HELD)


def _is_search(block: Mapping[str, Any]) -> bool:
    kind, name = text_of(block.get("type")) or "", text_of(block.get("name")) or ""
    is_search = "search" in name or "fetch" in name or "mcp" in kind
    return kind in _SEARCHING or (is_search and kind.startswith(("server_tool", "mcp_")))


def _cites(note: Any) -> bool:
    """Whether a note names a page or a file; others name documents that stand in the prompt."""
    if type(note) is str:
        return True
    own = fields_in(note)
    return text_of(own.get("type")) in _CITING or bool(text_of(own.get("url")))


def _is_given(value: Any) -> bool:
    return value is not None and (not any(type(value) is kind for kind in (bool, str, list, dict)) or bool(value))
