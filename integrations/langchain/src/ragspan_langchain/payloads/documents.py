"""Documents, wherever they lie in a payload."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan_langchain.payloads.shapes import Shape, shape_of, state_of

_MAX_DEPTH = 6
_MAX_FIELDS = 200
_MAX_DOCUMENTS = 2000


def is_document(value: Any) -> bool:
    """A document, or the dictionary that one becomes when a checkpoint is read back."""
    shape = shape_of(value)
    return shape is Shape.DOCUMENT or (shape is Shape.FIELDS and isinstance(value.get("page_content"), str))


def text_of(document: Any) -> str | None:
    """The document's text as it is now."""
    text = document.get("page_content") if isinstance(document, dict) else getattr(document, "page_content", None)
    return text if isinstance(text, str) else None


def id_and_metadata_of(document: Any) -> tuple[str | None, Mapping[str, Any]]:
    """The document's id, and a copy of its metadata, so that later changes are not seen; the values are shared."""
    if isinstance(document, dict):
        own, metadata = document.get("id"), document.get("metadata")
    else:
        own, metadata = getattr(document, "id", None), getattr(document, "metadata", None)
    return own if isinstance(own, str) else None, dict(metadata) if isinstance(metadata, dict) else {}


Found: TypeAlias = list[tuple[Any, float | None]]
"""Documents, each with its score where it came with one."""

_NONE: list[Found] = []


def documents_in(value: Any, depth: int = 0) -> list[Found]:
    """The documents in a payload, list by list: inside dictionaries, states and `(document, score)` pairs.

    Messages are not entered: what they carry may be the history of earlier turns.
    """
    shape = shape_of(value)
    if shape is Shape.PLAIN or shape is Shape.MESSAGE or shape is Shape.PROMPT or depth > _MAX_DEPTH:
        return _NONE
    if shape is Shape.ITEMS:
        return _documents_in_items(value, depth)
    if is_document(value):
        return [[(value, None)]]
    if shape is Shape.OTHER:
        return _NONE
    fields = list(dict.values(value if shape is Shape.FIELDS else state_of(value)))[:_MAX_FIELDS]
    deeper = [item for item in fields if type(item) is not str and shape_of(item) is not Shape.PLAIN]
    return [found for item in deeper for found in documents_in(item, depth + 1)] if deeper else _NONE


def _documents_in_items(value: Iterable[Any], depth: int) -> list[Found]:
    own: Found = []
    others: list[Found] = []
    for count, item in enumerate(value):
        pair = scored_document(item)
        if pair is not None:
            own.append(pair)
        elif shape_of(item) in _CONTAINERS:
            others += documents_in(item, depth + 1)
        elif count >= 3 and not own and not others:  # noqa: PLR2004  a list of numbers or texts is not worth reading on
            break
        if count >= _MAX_DOCUMENTS:
            break
    return [own, *others] if own else others


_CONTAINERS = {Shape.FIELDS, Shape.ITEMS, Shape.STATE}


def scored_document(item: Any) -> tuple[Any, float | None] | None:
    """A document, alone or as `(document, score)`."""
    if is_document(item):
        return item, None
    if isinstance(item, (tuple, list)) and len(item) == 2 and is_document(item[0]):  # noqa: PLR2004  (document, score)
        score = item[1]
        return item[0], float(score) if isinstance(score, numbers.Real) else None
    return None


def documents_of_messages(messages: Sequence[Any]) -> tuple[list[Found], bool]:
    """The documents that a conversation's messages carry beside their text.

    Those of the user's last message and after it are of the current request; of earlier ones, which are history, it is
    only told whether there are any.
    """
    current: list[Found] = []
    is_current, carried = True, False
    for message in reversed(messages):
        kind = getattr(message, "type", None)
        if kind == "human" and is_current:
            is_current = False
            beside = message.additional_kwargs
            if beside and "documents" in beside:
                current = [*documents_in(beside["documents"]), *current]
        elif kind == "tool":
            found = documents_in(getattr(message, "artifact", None))
            if is_current:
                current = [*found, *current]
            else:
                carried = carried or bool(found)
    return current, carried


_SEARCHED = re.compile(
    r"(?:^|_)(?:docs?|documents?|contexts?|passages?|chunks?|hits|snippets|articles|found|retrieved)"
    r"(?:_(?:list|texts?|found|used))?$|^(?:(?:re)?search_|web_|retrieval_|query_)*results$"
)
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


def names_empty_search(outputs: dict[Any, Any]) -> bool:
    """Whether a step gave an empty list in a field that is called a search's result; others are plans, notes, errors."""
    empty = [key for key, value in dict.items(outputs) if isinstance(value, (list, tuple)) and len(value) == 0]
    return any(isinstance(key, str) and _SEARCHED.search(_case.sub("_", key).lower()) for key in empty)


def lie_beside_messages(inputs: Any) -> bool:
    """Whether a payload is the state of a conversation, whose documents may be an earlier turn's."""
    shape = shape_of(inputs)
    fields = inputs if shape is Shape.FIELDS else state_of(inputs) if shape is Shape.STATE else {}
    return any(type(value) is list and value and shape_of(value[0]) is Shape.MESSAGE for value in dict.values(fields))


def tool_messages(output: Any) -> list[Any]:
    """The messages in a tool's output: itself, or those of the state update that a command carries."""
    update = getattr(output, "update", None)
    if isinstance(update, dict) and not isinstance(output, dict):
        messages = update.get("messages")
        return messages if isinstance(messages, list) else []
    return output if isinstance(output, list) else [output]
