"""Reads the payloads of spans, whatever convention they are of: single values, one reader of messages, and one of documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan import field_names
from ragspan.request import MEDIA, ROLES, Call, Document, PayloadMessage
from ragspan.safe_copy import CUT, OPAQUE, Hidden, Snapshot
from ragspan_receiver.spans import TracedSpan

Fields: TypeAlias = Mapping[str, Any]
Scored: TypeAlias = tuple[Document, float | None]

_WRAPPERS = frozenset({"message", "message_content", "tool_call", "document"})
"""OpenInference repeats the kind of a value before each of its names."""
_MAX_DEPTH = 40
_COMMAND = frozenset({"graph", "update", "resume", "goto"})
_MESSAGE_CLASS = re.compile(r"(human|ai|system|tool|function)?message(?:chunk)?", re.IGNORECASE)
_NO_TEXT = re.compile(r"<[\w.]+(?: object| at 0x|\()[^>]*>$|[A-Z]\w*\(\w+=|[A-Z]\w*\(\)$|__REDACTED__$")
"""How Python prints an object, and what instrumentations write in place of a text that they hide."""
_DOCUMENT_KEYS = ({"page_content"}, {"id_", "text"}, {"meta", "content"})
"""The names of a document's fields as LangChain, LlamaIndex and Haystack write them."""
_ASKED = ("messages", "prompts", "prompt")
_CALLS, _RESULTS = {"tool_call", "tool-call"}, {"tool_call_response", "tool-result"}
"""Types of a message's parts by OpenTelemetry's conventions, and in the Vercel AI SDK."""
_UNREAD = ("a message without readable text",)


def first_of(fields: Fields, names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def text_of(fields: Fields, names: Iterable[str]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)


def json_of(value: Any) -> Any:
    """The data of an attribute that holds JSON; None if it holds none."""
    if not isinstance(value, str):
        return value if isinstance(value, (dict, list)) else None
    try:
        return json.loads(value) if value.lstrip()[:1] in {"{", "[", '"'} else None
    except (ValueError, RecursionError):
        return None


def fields_of(value: Any) -> dict[str, Any]:
    """The fields in an attribute; none if it holds something else."""
    data = json_of(value)
    return {key: item for key, item in data.items() if isinstance(key, str)} if isinstance(data, dict) else {}


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    shown = "" if value is None else value
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)


def numbered(attributes: Fields, prefix: str) -> list[Any]:
    """The values of attributes named `prefix.0.name`, `prefix.1.name`: one mapping for each number, as deep as their names are."""
    start = f"{prefix}."
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        *path, last = [name for name in key[len(start) :].split(".") if name not in _WRAPPERS] or [""]
        inner: Any = found
        for name in path:
            inner = inner.setdefault(name, {}) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.setdefault(last, value)
    listed = _listed(found)
    return listed if isinstance(listed, list) else []


def _listed(value: Any) -> Any:
    """A mapping whose names are all numbers as a list, and so all inside it."""
    if not isinstance(value, dict):
        return value
    inside = {key: _listed(item) for key, item in value.items()}
    are_numbers = all(key.isdecimal() and key.isascii() for key in inside)
    return [inside[key] for key in sorted(inside, key=int)] if inside and are_numbers else inside


class Payloads:
    """The payloads of one trace. Equal texts of documents are one document."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._depth = 0

    def read(self, value: Any) -> Snapshot:
        """The data in an attribute: what looks like JSON is read as JSON."""
        data = json_of(value)
        if isinstance(value, str) and not isinstance(data, (dict, list)):
            return OPAQUE if value == "null" or _NO_TEXT.match(value) else value
        return OPAQUE if value is None else self.snapshot(value if data is None else data)

    def snapshot(self, value: Any) -> Snapshot:
        """A value that JSON can hold, with the documents and messages in it."""
        self._depth += 1
        try:
            return CUT if self._depth > _MAX_DEPTH else self._snapshot(value)
        finally:
            self._depth -= 1

    def _snapshot(self, value: Any) -> Snapshot:
        if isinstance(value, str):
            return OPAQUE if _NO_TEXT.match(value) else value
        if isinstance(value, Mapping):
            return self._of_fields(value)
        if isinstance(value, (list, tuple)):
            if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in ROLES and value[1]:  # noqa: PLR2004  (role, content)
                return self.message({"content": value[1]}, value[0])
            return [self.snapshot(item) for item in value]
        return value if value is None or isinstance(value, (bool, int, float)) else OPAQUE

    def _of_fields(self, value: Fields) -> Snapshot:
        inner, kind = value.get("data", value.get("kwargs")), value.get("type")
        if isinstance(inner, Mapping) and kind == "constructor":  # an object of LangChain's
            path = value.get("id")
            match = _MESSAGE_CLASS.fullmatch(str(path[-1])) if isinstance(path, list) and path else None
            return self.snapshot(inner) if match is None else self.message(inner, match[1] or "human")
        if isinstance(inner, Mapping) and str(kind).lower().removesuffix("messagechunk") in ROLES:
            return self.message(inner, str(kind))
        if (found := self._document_in(value)) is not None:
            return found[0]
        role = value.get("role", kind)
        if isinstance(role, str) and role.lower() in ROLES and ("content" in value or "parts" in value):
            return self.message(value, role)
        if kind == "tool_call" and "args" in value:
            return self._call(value)
        if "update" in value and value.keys() <= _COMMAND:  # LangGraph's command, which holds no question
            return Hidden({"update": self.snapshot(value["update"])})
        return {str(key): self.snapshot(item) for key, item in value.items()}

    # Documents

    def documents_in(self, values: Any, *, loosely: bool = False) -> list[Scored]:
        """The documents in a list, each with its score; `loosely`, texts and whatever has a text are documents, too."""
        found = []
        for each in values if isinstance(values, (list, tuple)) else [values]:
            data = json_of(each)  # some write each document as JSON within JSON
            value = each if data is None else data
            entry = self._document_in(value) if isinstance(value, Mapping) else None
            if entry is None and loosely:
                fields = value if isinstance(value, Mapping) else {"text": value}
                document = self._with_text(fields)
                if document is not None and document.text:
                    entry = (document, _number(first_of(fields, field_names.SCORE)))
            found += [] if entry is None else [entry]
        return found

    def _document_in(self, value: Fields) -> Scored | None:
        inner = value.get("node", value.get("document"))
        fields = inner if isinstance(inner, Mapping) else value  # its score stands beside it
        is_one = any(keys <= fields.keys() for keys in _DOCUMENT_KEYS)
        document = self._with_text(fields) if is_one else None
        return None if document is None else (document, _number(value.get("score")))

    def _with_text(self, value: Fields) -> Document | None:
        text = next((value[key] for key in field_names.TEXT if isinstance(value.get(key), str)), None)
        if text is None:
            return None
        known = self._documents.setdefault(text, Document(text, None, {}))  # the first id and metadata stay
        own_id = first_of(value, field_names.ID)
        if known.id is None and isinstance(own_id, (str, int)) and own_id != "":
            known.id = str(own_id)
        known.metadata = known.metadata or fields_of(first_of(value, field_names.METADATA))
        return known

    # Messages

    def messages_at(self, span: TracedSpan, names: Iterable[str], role: str = "user") -> list[PayloadMessage]:
        """The messages in the first of these attributes: a text, or JSON, also on an event; or numbered attributes."""
        for name in names:
            holders = (span.attributes, *(event.attributes for event in span.events))
            given = next((one[name] for one in holders if one.get(name) is not None), None)
            if given is not None:
                found = self.prompt_in(given)
            else:
                listed = (one for one in numbered(span.attributes, name) if isinstance(one, Mapping))
                found = [self.message(one, str(one.get("role") or role)) for one in listed]
            if found:
                return found
        return []

    def prompt_in(self, given: Any) -> list[PayloadMessage]:
        """The messages in a payload: a text, messages, or fields with them."""
        data = json_of(given)
        if isinstance(data, dict):
            holders = [one for one in (data, *data.values()) if isinstance(one, dict)]
            data = next((one[name] for one in holders for name in _ASKED if one.get(name)), [])
        first = data[0] if isinstance(data, list) and len(data) == 1 else None
        if isinstance(first, list) and not isinstance(next(iter(first), None), str):  # a batch of one
            data = first
        each = data if isinstance(data, list) else [self.read(given) if data is None else data]
        # Haystack's messages come as Python prints them.
        read = [one if str(one).startswith("ChatMessage(") else self.snapshot(one) for one in each]
        made = [PayloadMessage("human", one) if isinstance(one, str) else one for one in read]
        return [one for one in made if isinstance(one, PayloadMessage)]

    def reply_in(self, gave: Any) -> PayloadMessage | None:
        """What a model said: a text, a message, or LangChain's generations."""
        data = json_of(gave)
        said: Any = data.get("generations") if isinstance(data, dict) else None
        while isinstance(said, list) and said:
            said = said[0]
        reply = self.read(said.get("message") or said.get("text") if isinstance(said, Mapping) else gave)
        reply = reply[0] if isinstance(reply, list) and reply else reply
        if isinstance(reply, PayloadMessage):
            return PayloadMessage("ai", reply.content, reply.calls)
        return PayloadMessage("ai", reply) if isinstance(reply, str) else None

    def message(self, value: Fields, role: str) -> PayloadMessage:
        """A message: LangChain's or OpenAI's fields, or parts."""
        message = PayloadMessage(ROLES.get(role.lower().removesuffix("messagechunk"), "human"))
        content = first_of(value, ("parts", "contents", "content"))
        if isinstance(content, str):
            parts = json_of(content) if content.startswith('[{"type"') else None
            content = ("" if _NO_TEXT.match(content) else content) if parts is None else parts
        if isinstance(value.get("function"), list):  # AutoGen's instrumentor has results of tools so
            content = [{"text": fields_of(one).get("content")} for one in value["function"]]
        calls = list(json_of(value.get("tool_calls")) or ()) if message.role == "ai" else []
        if isinstance(content, list):
            shown = self._blocks(message, content, calls)
            texts = [one for one in shown if isinstance(one, str)]
            message.content = shown if len(texts) < len(shown) or content is value.get("content") else "\n".join(texts)
        elif content is not None:
            message.content = _as_text(content)
        message.calls = [self._call(call) for call in calls if isinstance(call, Mapping)] if calls else None
        message.call_id = message.call_id or value.get("tool_call_id") or (message.role == "tool" and value.get("id"))
        message.artifact = self.snapshot(value.get("artifact"))
        beside = value.get("additional_kwargs")
        if isinstance(beside, Mapping) and beside.get("documents") is not None:
            message.documents = self.snapshot(beside["documents"])
        if message.role != "ai" and not message.prompt_text.strip():
            message.unread = _UNREAD  # what it shows may be a document
        return message

    def _blocks(self, message: PayloadMessage, parts: Sequence[Any], calls: list[Any]) -> list[Snapshot]:
        """What a message in parts shows; calls of tools in them are added to `calls`."""
        shown: list[Snapshot] = []
        for part in parts:
            kind = part.get("type") if isinstance(part, Mapping) else None
            said = first_of(part, ("text", "content")) if isinstance(part, Mapping) else part
            if kind in _CALLS:
                calls.append(part)
            elif kind in _RESULTS:
                message.role, message.call_id = "tool", first_of(part, ("id", "toolCallId"))
                result = first_of(part, ("response", "result", "output"))
                shown.append(_as_text(result.get("value", result) if isinstance(result, Mapping) else result))
            elif kind in {"text", None} and isinstance(said, str):
                shown.append(said)
            elif kind not in MEDIA:
                shown.append(self.snapshot(part))
        return shown

    def _call(self, value: Fields) -> Call:
        function = value.get("function")
        named = function if isinstance(function, Mapping) else value
        arguments = first_of(named, ("args", "arguments", "input"))
        data = json_of(arguments)
        name, own_id = first_of(named, ("name", "toolName")), first_of(value, ("id", "toolCallId"))
        return Call(name, own_id, self.snapshot(arguments if data is None else data))
