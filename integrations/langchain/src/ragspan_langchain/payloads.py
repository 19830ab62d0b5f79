"""Takes snapshots of LangChain's payloads, on the request path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

from ragspan.capturing.log import RequestLog
from ragspan.capturing.snapshots import Copying, Opaque, Snapshot, Snapshots
from ragspan.runs.payloads import MEDIA, MESSAGE, ROLES, Call, Document, Message


def take_each(values: Iterable[Any], log: RequestLog) -> list[Snapshot]:
    """Snapshots of a prompt's messages or documents, each as a payload of its own: none is left out."""
    return [SNAPSHOTS.take(value, log) for value in values]


def take_reply(response: Any, log: RequestLog) -> tuple[Message, list[Mapping[str, Any]]]:
    """The reply of the first generation in an `LLMResult`, and what the provider told about it."""
    try:
        generation = response.generations[0][0]
    except (AttributeError, IndexError, TypeError):
        return Message("ai"), []
    message = getattr(generation, "message", None)
    if message is not None:
        taken = SNAPSHOTS.take(message, log)
    else:
        text = getattr(generation, "text", None)
        taken = Message("ai", SNAPSHOTS.take(text, log) if isinstance(text, str) else "")
    return taken, told_about(response, generation, message)


def told_about(response: Any, generation: Any, message: Any) -> list[Mapping[str, Any]]:
    """What the provider told about its reply, in whatever form."""
    told = [getattr(generation, "generation_info", None), getattr(response, "llm_output", None)]
    told += [getattr(message, "response_metadata", None), getattr(message, "usage_metadata", None)]
    return [each for each in told if isinstance(each, dict)]


def rewritten_documents(log: RequestLog) -> list[tuple[Document, str]]:
    """The documents that were rewritten in place since they passed by, with their texts as they are now."""
    changed = []
    for document, snapshot in list(log.kept.values()):
        try:
            text = dict.get(document, "page_content") if isinstance(document, dict) else document.page_content
        except Exception:  # noqa: BLE001  a class of the program's own: what was read at first counts
            text = snapshot.text
        if text is not snapshot.text and isinstance(text, str):
            changed.append((snapshot, log.count(str.__str__(text))))
    return changed


def _read_document(copying: Copying, value: Any, _: int, fields: Mapping[str, Any] | None = None) -> Snapshot:
    known = copying.kept.get(id(value))
    if known is not None:
        return known[1]
    fields = value.__dict__ if fields is None else fields
    text, own_id, metadata = fields.get("page_content"), fields.get("id"), fields.get("metadata")
    if type(text) is not str:
        if not isinstance(text, str):
            return Opaque()
        text = str.__str__(text)
    entries = metadata if type(metadata) is dict else dict.items(metadata) if isinstance(metadata, dict) else ()
    about = dict(entries)  # the values are shared
    document = Document(text, own_id if isinstance(own_id, str) else None, about)
    copying.texts[id(text)] = text
    copying.kept[id(value)] = value, document
    return document


def _read_message(copying: Copying, value: Any, depth: int) -> Snapshot:
    if not copying.whole:
        return MESSAGE
    beside, content = value.additional_kwargs, value.content
    text = copying.copy(content, depth) if type(content) is str else _content(copying, content, depth)
    message = Message(ROLES.get(value.type) or _role_of(value), text)
    if beside and "documents" in beside:
        message.documents = copying.copy(beside["documents"], depth + 1)
    if message.role == "ai":
        message.calls = _calls(copying, getattr(value, "tool_calls", None), depth)
    elif message.role == "tool":
        message.call_id = getattr(value, "tool_call_id", None)
        message.artifact = copying.aside(getattr(value, "artifact", None), depth + 1)
    return message


def _role_of(message: BaseMessage) -> str:
    """The role of a streamed message, or of one that has its role in a field."""
    kind = message.type.lower().removesuffix("messagechunk")
    return ROLES.get(str(getattr(message, "role", "")).lower() if kind == "chat" else kind, "human")


def _content(copying: Copying, content: Any, depth: int) -> Any:
    if not isinstance(content, list):
        return copying.copy(content, depth) if isinstance(content, str) else ""
    shown = [block for block in content if not (isinstance(block, dict) and block.get("type") in MEDIA)]
    return [copying.copy(block, depth + 1) for block in shown]


def _calls(copying: Copying, calls: Any, depth: int) -> list[Call] | None:
    return [_call(copying, call, depth) for call in calls if isinstance(call, dict)] if calls else None


def _call(copying: Copying, call: dict[Any, Any], depth: int) -> Call:
    return Call(call.get("name"), call.get("id"), copying.copy(call.get("args"), depth + 1))


def _read_prompt(copying: Copying, value: Any, depth: int) -> Snapshot:
    return copying.items(value.to_messages(), depth + 1) if copying.whole else MESSAGE


def _read_fields(copying: Copying, given: dict[Any, Any], depth: int) -> Snapshot:
    value = given if type(given) is dict else dict(dict.items(given))  # a lazy one of the program's is not filled
    if isinstance(value.get("page_content"), str):  # what a document becomes when a checkpoint is read back
        return _read_document(copying, given, depth, value)
    if copying.whole:
        kind = value.get("type")
        if kind == "tool_call" and "args" in value:
            return _call(copying, value, depth)
        if kind == "base64":
            return Opaque()
        role = value.get("role", kind)
        if isinstance(role, str) and role.lower() in ROLES and "content" in value:
            return Message(ROLES[role.lower()], _content(copying, value["content"], depth))
    return copying.fields(value, depth)


def _read_tuple(copying: Copying, value: tuple[Any, ...], depth: int) -> Snapshot:
    if copying.whole and len(value) == 2 and isinstance(value[0], str) and value[0].lower() in ROLES:  # noqa: PLR2004  (role, content)
        return Message(ROLES[value[0].lower()], _content(copying, value[1], depth))
    return copying.items(value, depth)


SNAPSHOTS = Snapshots(
    {
        LangChainDocument: _read_document,
        BaseMessage: _read_message,
        PromptValue: _read_prompt,
        BaseModel: lambda copying, value, depth: copying.state(value.__dict__, depth),
        dict: _read_fields,
        tuple: _read_tuple,
    },
    hidden={"Command"},  # LangGraph's steers a graph and holds no question
)
