"""Reads what instrumentations write into attributes, as text or as JSON: documents, messages, calls of tools, and data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragspan import field_names
from ragspan.request import MEDIA, ROLES, Call, Document, PayloadMessage
from ragspan.safe_copy import CUT, OPAQUE, Hidden, Snapshot

Fields = Mapping[str, Any]
Scored = tuple[Document, float | None]

_MAX_VALUES = 200_000
_MAX_DEPTH = 40
_COMMAND = frozenset({"graph", "update", "resume", "goto"})
_MESSAGE_CLASS = re.compile(r"(human|ai|system|tool|function)?message(?:chunk)?", re.IGNORECASE)
_REPR = re.compile(r"<[\w.]+(?: object| at 0x|\()[^>]*>$|[A-Z]\w*\(\w+=|[A-Z]\w*\(\)$")
"""How Python prints an object, which is not text for a user."""
_CHUNKS = ("text_chunks", "context", "contexts", "passages")
_CALLED = {"args", "kwargs"}
_UNREAD = ("a message without readable text",)


class Payloads:
    """The payloads of one trace. Equal texts of documents are one document."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self.by_id: dict[str, Document] = {}
        """The documents that have been read and have ids."""
        self._left = _MAX_VALUES

    def document(self, text: str, *, own_id: Any = None, metadata: Any = None) -> Document:
        """The document with this text; the first id and metadata stay."""
        known = self._documents.setdefault(text, Document(text, None, {}))
        if known.id is None and isinstance(own_id, (str, int)) and own_id != "":
            known.id = str(own_id)
            self.by_id.setdefault(known.id, known)
        known.metadata = known.metadata or as_fields(metadata)
        return known

    def read(self, value: Any) -> Snapshot:
        """The data in an attribute: what looks like JSON is read as JSON."""
        data = value
        if isinstance(value, str):
            data = json_of(value)
            if not isinstance(data, (dict, list)):
                return OPAQUE if value == "null" or _REPR.match(value) else value
        return OPAQUE if data is None else self.snapshot(data)

    def snapshot(self, value: Any, depth: int = 0) -> Snapshot:
        """A value that JSON can hold, with the documents and messages in it."""
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            return CUT
        if isinstance(value, str):
            return OPAQUE if _REPR.match(value) else value
        if isinstance(value, Mapping):
            return self._of_fields(value, depth)
        if isinstance(value, (list, tuple)):
            if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in ROLES and value[1]:  # noqa: PLR2004  (role, content)
                return self.message({"content": value[1]}, value[0], depth)
            return [self.snapshot(item, depth + 1) for item in value]
        return value if value is None or isinstance(value, (bool, int, float)) else OPAQUE

    def _of_fields(self, value: Fields, depth: int) -> Snapshot:
        inner = value.get("data", value.get("kwargs"))
        if isinstance(inner, Mapping) and (role := _role_of_wrapped(value)):  # as LangChain writes a message
            return self.message(inner, role, depth)
        if value.get("type") == "constructor" and isinstance(inner, Mapping):  # any other object of LangChain's
            return self.snapshot(inner, depth + 1)
        if (found := self._document_in(value)) is not None:
            return found[0]
        role = value.get("role", value.get("type"))
        if isinstance(role, str) and role.lower() in ROLES and ("content" in value or "parts" in value):
            return self.message(value, role, depth)
        if value.get("type") == "tool_call" and "args" in value:
            return self._call(value, depth)
        if "update" in value and value.keys() <= _COMMAND:  # LangGraph's command, which holds no question
            return Hidden({"update": self.snapshot(value["update"], depth + 1)})
        return {str(key): self.snapshot(item, depth + 1) for key, item in value.items()}

    def _document_in(self, value: Fields) -> Scored | None:
        """The document that these fields are, as LangChain, LlamaIndex or Haystack writes one; with its score."""
        score = value.get("score")
        inner = value.get("node", value.get("document"))
        if isinstance(inner, Mapping):  # with its score beside it
            value = inner
        keys = value.keys()
        if not ("page_content" in keys or ("id_" in keys and "text" in keys) or ("meta" in keys and "content" in keys)):
            return None
        found = self._with_text(value)
        return None if found is None else (found, number(score))

    def documents_in(self, values: Any, *, loosely: bool = False) -> list[Scored]:
        """The documents in a list; `loosely`, texts and whatever has a text are documents, too."""
        found = []
        for each in values if isinstance(values, (list, tuple)) else [values]:
            data = json_of(each)  # some write each document as JSON within JSON
            value = each if data is None else data
            entry = self._document_in(value) if isinstance(value, Mapping) else None
            if entry is None and loosely:
                fields = value if isinstance(value, Mapping) else {"text": value}
                document = self._with_text(fields)
                if document is not None and document.text:
                    entry = document, number(_first(fields, field_names.SCORE))
            found += [] if entry is None else [entry]
        return found

    def _with_text(self, value: Fields) -> Document | None:
        text = next((value[key] for key in field_names.TEXT if isinstance(value.get(key), str)), None)
        if text is None:
            return None
        return self.document(text, own_id=_first(value, field_names.ID), metadata=_first(value, field_names.METADATA))

    def message(self, value: Fields, role: str, depth: int = 0) -> PayloadMessage:
        """A message: LangChain's fields, or the parts of OpenTelemetry's conventions."""
        message = PayloadMessage(ROLES.get(role.lower().removesuffix("messagechunk"), "human"))
        content = value.get("content")
        if isinstance(value.get("parts"), list):
            self._read_parts(message, value["parts"], depth)
        elif isinstance(content, str):
            message.content = content
        elif isinstance(content, list):
            shown = (one for one in content if not (isinstance(one, Mapping) and one.get("type") in MEDIA))
            message.content = [self.snapshot(one, depth + 1) for one in shown]
        calls = value.get("tool_calls")
        if message.role == "ai" and isinstance(calls, list) and calls:
            message.calls = [self._call(call, depth) for call in calls if isinstance(call, Mapping)]
        message.call_id = message.call_id or value.get("tool_call_id") or (message.role == "tool" and value.get("id"))
        message.artifact = self.snapshot(value.get("artifact"), depth + 1)
        beside = value.get("additional_kwargs")
        if isinstance(beside, Mapping) and beside.get("documents") is not None:
            message.documents = self.snapshot(beside["documents"], depth + 1)
        if message.role != "ai" and not message.prompt_text.strip():
            message.unread = _UNREAD  # what it shows may be a document
        return message

    def _read_parts(self, message: PayloadMessage, parts: Iterable[Any], depth: int) -> None:
        texts = []
        for part in parts:
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "tool_call":
                message.calls = [*(message.calls or ()), self._call(part, depth)]
            elif part.get("type") == "tool_call_response":
                message.role, message.call_id = "tool", part.get("id")
                texts.append(as_text(part.get("response", part.get("result"))) or "")
            elif part.get("type") in {"text", None} and isinstance(part.get("content", part.get("text")), str):
                texts.append(part.get("content", part.get("text")))
        message.content = "\n".join(texts)

    def _call(self, value: Fields, depth: int) -> Call:
        function = value.get("function")
        named = function if isinstance(function, Mapping) else value
        arguments = _first(named, ("args", "arguments"))
        data = json_of(arguments) if isinstance(arguments, str) else arguments
        return Call(named.get("name"), value.get("id"), self.snapshot(arguments if data is None else data, depth + 1))

    def prompt_in(self, given: Any) -> list[PayloadMessage]:
        """The messages that a model was given: a text, messages, or fields with them."""
        data = self.read(given)
        asked = data.get("messages", data.get("prompts")) if isinstance(data, dict) else data
        while isinstance(asked, list) and len(asked) == 1 and isinstance(asked[0], list):
            asked = asked[0]
        each = asked if isinstance(asked, list) else [asked]
        made = [PayloadMessage("human", one) if isinstance(one, str) else one for one in each]
        return [one for one in made if isinstance(one, PayloadMessage)]

    def reply_in(self, gave: Any) -> PayloadMessage | None:
        """What a model said: a text, a message, or LangChain's generations."""
        data = json_of(gave)
        said: Any = data.get("generations") if isinstance(data, dict) and "generations" in data else None
        while isinstance(said, list) and said:
            said = said[0]
        if isinstance(said, Mapping):
            gave = said.get("message") or said.get("text")
        reply = self.read(gave)
        reply = reply[0] if isinstance(reply, list) and reply else reply
        if isinstance(reply, PayloadMessage):
            return PayloadMessage("ai", reply.content, reply.calls)
        return PayloadMessage("ai", reply) if isinstance(reply, str) else None


def _role_of_wrapped(value: Fields) -> str | None:
    """The role of a message that LangChain wrote with its class beside its fields."""
    kind = value.get("type")
    if kind == "constructor":
        path = value.get("id")
        match = _MESSAGE_CLASS.fullmatch(str(path[-1])) if isinstance(path, list) and path else None
        return (match[1] or "human") if match else None
    return kind if isinstance(kind, str) and kind.lower().removesuffix("messagechunk") in ROLES else None


def _first(value: Fields, keys: Iterable[str]) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def json_of(value: Any) -> Any:
    """The data of an attribute that holds JSON; None if it holds none."""
    if not isinstance(value, str):
        return value if isinstance(value, (dict, list)) else None
    if value.lstrip()[:1] not in {"{", "[", '"'}:
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def as_fields(value: Any) -> dict[str, Any]:
    """The fields in an attribute; none if it holds something else."""
    data = json_of(value)
    return {key: item for key, item in data.items() if isinstance(key, str)} if isinstance(data, dict) else {}


def as_text(value: Any) -> str | None:
    """A text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None


def text(fields: Fields, *names: str) -> str | None:
    """The first of these fields that is a text."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)


def whole(fields: Fields, *names: str) -> int | None:
    """The first of these fields that is a number, as a whole one."""
    found = next((one for name in names if (one := number(fields.get(name))) is not None), None)
    return int(found) if found is not None and abs(found) < 1e15 else None  # noqa: PLR2004  no count is as large


def number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def arguments_in(fields: Fields) -> Any:
    """What a Python function was called with, if its `args` and `kwargs` are among these fields: its only text, or its arguments."""
    if not (fields.keys() <= _CALLED or fields.keys() >= _CALLED):
        return fields
    named, others = fields.get("kwargs"), fields.get("args")
    only = others[0] if isinstance(others, list) and len(others) == 1 else None
    return only if isinstance(only, str) else named or only or others


def query_in(inputs: Snapshot) -> str | None:
    """What was searched with: a text, or the field with such a name in what a search was called with."""
    if isinstance(inputs, dict):
        inner = inputs.get("query_bundle", inputs.get("str_or_query_bundle", inputs))
        inputs = inner.get("query_str", inner.get("query")) if isinstance(inner, dict) else inner
    return inputs if isinstance(inputs, str) else None


def chunks_in(inputs: Snapshot) -> list[str]:
    """The documents that a step was given as texts, as the model sees them: by LlamaIndex's synthesizers and DSPy's modules."""
    lists = [inputs.get(key) for key in _CHUNKS] if isinstance(inputs, dict) else []
    return [chunk for chunks in lists if isinstance(chunks, list) for chunk in chunks if isinstance(chunk, str)]


def numbered(attributes: Fields, prefix: str) -> list[dict[str, Any]]:
    """The values of attributes named `prefix.0.name`, `prefix.1.name`, as one mapping for each number."""
    found: dict[int, dict[str, Any]] = {}
    start = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(start):
            index, _, name = key[len(start) :].partition(".")
            if index.isdecimal() and index.isascii() and len(index) < 7:  # noqa: PLR2004  none has a million
                found.setdefault(int(index), {})[name] = value
    return [found[index] for index in sorted(found)]
