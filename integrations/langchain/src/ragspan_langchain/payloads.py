"""Takes snapshots of LangChain's payloads, on the request path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

from ragspan.capturing.log import RequestLog
from ragspan.capturing.snapshots import Copying, Opaque, Snapshot, Snapshots
from ragspan.plain_data import fields_of, is_dict, items_of, kept_entries, text_keyed, text_of
from ragspan.provider_replies import notes_of
from ragspan.runs.payloads import MEDIA, MESSAGE, ROLES, UNREAD, Call, Document, FilledPrompt, Message

_END = 64
_DATA = ("data", "base64", "file_data", "url", "image_url", "file_id", "file_uri", "uri")
_MAX_DEPTH = 3


def take_each(values: Iterable[Any], log: RequestLog) -> list[Snapshot]:
    """Snapshots of a prompt's messages or documents, each as a payload of its own: none is left out."""
    return [SNAPSHOTS.take(value, log) for value in values]


def take_reply(response: Any, log: RequestLog) -> tuple[Message, Sequence[Mapping[str, Any]]]:
    """The reply of the first generation in an `LLMResult`, and what the provider told about it."""
    result = fields_of(response)
    generation: Any = result.get("generations")
    for _ in range(2):  # a list for each prompt
        items = items_of(generation)
        generation = items[0] if items else None
    own = fields_of(generation)
    message = own.get("message")
    if message is not None:
        taken = SNAPSHOTS.take(message, log)
        if isinstance(taken, Message):
            taken.searched = _searched(message)
    else:
        text = text_of(own.get("text"))
        taken = Message("ai", "" if text is None else log.count(text))
    return taken, notes_of(told_about(result, own, fields_of(message)))


def told_about(result: Mapping[str, Any], generation: Mapping[str, Any], message: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the provider told about its reply, in whatever form; the arguments are the fields of LangChain's objects."""
    own = generation.get("generation_info"), result.get("llm_output")
    return (*own, message.get("response_metadata"), message.get("usage_metadata"))


def end_of_stream(chunk: Any) -> tuple[bool, Sequence[Mapping[str, Any]]]:
    """Whether the last chunk of a stream says that it is the last, and what the provider told with it."""
    own = fields_of(chunk)
    message = fields_of(own.get("message"))
    notes = notes_of((message.get("response_metadata"), own.get("generation_info")))
    return text_of(message.get("chunk_position")) == "last", notes


_SEARCHING = frozenset(
    {"web_search_call", "file_search_call", "mcp_call", "web_search_tool_result", "web_fetch_tool_result"}
)
_CITING = frozenset({"url_citation", "file_citation", "web_search_result_location", "search_result_location"})
_TOLD = ("grounding_metadata", "citations", "search_results", "tool_outputs", "annotations", "executed_tools")


def _searched(message: Any) -> bool:
    """Whether the provider says with its reply that it searched by itself."""
    fields = fields_of(message)
    content, told = fields.get("content"), [fields.get("additional_kwargs"), fields.get("response_metadata")]
    blocks = [block for block in content if type(block) is dict] if type(content) is list else []
    for block in blocks:
        kind, name = text_of(block.get("type")) or "", text_of(block.get("name")) or ""
        is_search = "search" in name or "fetch" in name or "mcp" in kind
        if kind in _SEARCHING or (is_search and kind.startswith(("server_tool", "mcp_"))):
            return True
        notes = items_of(block.get("annotations") or block.get("citations")) or ()
        if any(type(note) is dict and (note.get("type") in _CITING or note.get("url")) for note in notes):
            return True
    return any(type(each) is dict and any(each.get(key) for key in _TOLD) for each in told)


def rewritten_documents(log: RequestLog) -> list[tuple[Document, str]]:
    """The documents that were rewritten in place since they passed by, with their texts as they are now."""
    changed = []
    for document, snapshot in list(log.kept.values()):
        if type(document) is LangChainDocument:  # mostly; the class is known, and has no descriptor of this name
            text = document.__dict__.get("page_content")
        else:
            fields = text_keyed(document) if is_dict(document) else fields_of(document)
            text = fields.get("page_content")
        if text is not snapshot.text and (text := text_of(text)) is not None and text != snapshot.text:
            changed.append((snapshot, log.count(text)))
    return changed


def _read_document(copying: Copying, value: Any, _: int, fields: Mapping[str, Any] | None = None) -> Snapshot:
    known = copying.kept.get(id(value))
    if known is not None:
        return known[1]
    fields = fields_of(value) if fields is None else fields
    text = text_of(fields.get("page_content"))
    if text is None:
        return Opaque()
    metadata = kept_entries(fields.get("metadata"), texts=copying.texts)
    document = Document(text, text_of(fields.get("id")), metadata)
    copying.texts[id(text)] = text
    copying.parts += 3 * len(metadata)  # names and small texts
    copying.kept[id(value)] = value, document
    return document


def _read_message(copying: Copying, value: Any, depth: int) -> Snapshot:
    if not copying.whole:
        return MESSAGE
    own = fields_of(value)
    beside, content = own.get("additional_kwargs"), own.get("content")
    text = copying.copy(content, depth) if type(content) is str else _content(copying, content, depth)
    message = Message(_role_of(own), text)
    if type(content) is list:
        message.unread = [_end_of(block) for block in content if _is_unread(block)]
    if beside and is_dict(beside) and "documents" in (beside := text_keyed(beside)):
        message.documents = copying.copy(beside["documents"], depth + 1)
    if message.role == "ai":
        message.calls = _calls(copying, own.get("tool_calls"), depth)
    elif message.role == "tool":
        message.call_id = text_of(own.get("tool_call_id"))
        message.failed = own.get("status") == "error"
        message.artifact = copying.aside(own.get("artifact"), depth + 1)
    return message


def _role_of(message: Mapping[str, Any]) -> str:
    """The role of a message, also of a streamed one, or of one that has its role in a field."""
    kind = text_of(message.get("type")) or ""
    if kind in ROLES:
        return ROLES[kind]
    kind = kind.lower().removesuffix("messagechunk")
    return ROLES.get((text_of(message.get("role")) or "").lower() if kind == "chat" else kind, "human")


def _content(copying: Copying, content: Any, depth: int) -> Any:
    text = text_of(content)
    if text is not None:
        return copying.copy(text, depth)
    blocks = items_of(content) if issubclass(type(content), list) else None
    return [copying.copy(block, depth + 1) for block in blocks or () if not _is_media(block)]


def _is_media(block: Any) -> bool:
    return is_dict(block) and text_of(text_keyed(block).get("type")) in MEDIA


def _is_unread(block: Any) -> bool:
    if type(block) is not dict:
        return False
    kind, source = block.get("type"), block.get("source")
    is_file = kind == "document" and type(source) is dict and source.get("type") not in {"text", "content"}
    return is_file or (kind in UNREAD and type(block.get("text")) is not str)


def _end_of(block: dict[Any, Any], depth: int = 0) -> str:
    """The end of a picture's data, or of its address."""
    texts = [block[key] for key in _DATA if type(block.get(key)) is str]
    inner = [_end_of(each, depth + 1) for each in block.values() if type(each) is dict and depth < _MAX_DEPTH]
    return next((text[-_END:] for text in (*texts, *inner) if text), "")


def _calls(copying: Copying, calls: Any, depth: int) -> list[Call] | None:
    items = items_of(calls) if calls is not None else None
    return [_call(copying, text_keyed(call), depth) for call in items if is_dict(call)] or None if items else None


def _call(copying: Copying, call: Mapping[str, Any], depth: int) -> Call:
    return Call(text_of(call.get("name")), text_of(call.get("id")), copying.copy(call.get("args"), depth + 1))


def _read_prompt(copying: Copying, value: Any, depth: int) -> Snapshot:
    whole, copying.whole = copying.whole, True
    try:
        own = fields_of(value)
        text = text_of(own.get("text"))
        if text is not None:
            messages = [Message("human", copying.copy(text))]
        else:
            messages = copying.items(items_of(own.get("messages")) or [], depth + 1)
    finally:
        copying.whole = whole
    return messages if whole or not isinstance(messages, list) else FilledPrompt(messages)


def _read_fields(copying: Copying, given: dict[Any, Any], depth: int) -> Snapshot:
    value = text_keyed(given)
    if text_of(value.get("page_content")) is not None:  # what a document becomes when a checkpoint is read back
        return _read_document(copying, given, depth, value)
    if copying.whole:
        kind = text_of(value.get("type"))
        if kind == "tool_call" and "args" in value:
            return _call(copying, value, depth)
        if kind == "base64":
            return Opaque()
        role = text_of(value.get("role")) if "role" in value else kind
        if role is not None and (role := role.lower()) in ROLES and "content" in value:
            return Message(ROLES[role], _content(copying, value["content"], depth))
    return copying.fields(given, depth)


def _read_tuple(copying: Copying, value: tuple[Any, ...], depth: int) -> Snapshot:
    if copying.whole and len(value) == 2 and (role := text_of(value[0])) is not None and role.lower() in ROLES:  # noqa: PLR2004  (role, content)
        return Message(ROLES[role.lower()], _content(copying, value[1], depth))
    return copying.items(value, depth)


SNAPSHOTS = Snapshots(
    {
        LangChainDocument: _read_document,
        BaseMessage: _read_message,
        PromptValue: _read_prompt,
        BaseModel: lambda copying, value, depth: copying.state(fields_of(value), depth),
        dict: _read_fields,
        tuple: _read_tuple,
    },
    hidden={"Command"},  # LangGraph's steers a graph and holds no question
)
