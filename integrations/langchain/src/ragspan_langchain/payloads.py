"""Takes snapshots of LangChain's payloads, on the request path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from pydantic import BaseModel

from ragspan.capturing import RequestLog
from ragspan.request import (
    MEDIA,
    MESSAGE,
    ROLES,
    UNREAD,
    Call,
    Document,
    PayloadMessage,
    notes_of,
    reports_search,
)
from ragspan.safe_copy import (
    CUT,
    MAX_BLOCKS,
    MAX_NODES_OF_STEP,
    Copying,
    Opaque,
    Snapshot,
    Snapshots,
    fields_of,
    is_dict,
    items_of,
    kept_entries,
    small_copy,
    text_keyed,
    text_of,
)

_END = 64
_DATA = ("data", "base64", "file_data", "url", "image_url", "file_id", "file_uri", "uri")
_MAX_DEPTH = 3
_MAX_FOUND = 20_000
_OF_DOCUMENT = {"page_content", "id", "metadata", "type", "score"}

PROMPT = Opaque()
"""Replaces a prompt in the payload of a step."""
_ROLE_OF = {HumanMessage: "human", SystemMessage: "system", AIMessage: "ai"}
_own_messages = {id(kind): role for kind, role in _ROLE_OF.items()}  # classes of a program's own are not hashed


def take_each(values: Iterable[Any], log: RequestLog) -> list[Snapshot]:
    """Snapshots of a prompt's messages or documents, each as a payload of its own: none is left out."""
    return [_plain_message(value, log) or take(value, log) for value in values]


def _plain_message(value: Any, log: RequestLog) -> PayloadMessage | None:
    """A snapshot of a message of the framework's own class that holds a text and nothing else, as most do; None for others."""
    role = _own_messages.get(id(type(value)))
    if role is None:
        return None
    own = value.__dict__
    if type(own) is not dict:
        return None
    content, beside, calls = own.get("content"), own.get("additional_kwargs"), own.get("tool_calls")
    if type(content) is not str or type(beside) is not dict or beside:
        return None
    if calls is not None and (type(calls) is not list or calls):
        return None
    log.texts[id(content)] = content
    log.parts += 1
    return PayloadMessage(role, content)


def take_found(found: Any, log: RequestLog) -> Snapshot:
    """A snapshot of what a retriever found: mostly documents of the framework's own class."""
    if type(found) is not list or not 0 < len(found) <= _MAX_FOUND:
        return take(found, log)
    documents = []
    for each in found:
        if type(each) is not LangChainDocument:
            return take(found, log)
        documents.append(_read_document(log, each, 0, each.__dict__))
    return documents


def take_reply(response: Any, log: RequestLog) -> tuple[PayloadMessage, Sequence[Mapping[str, Any]]]:
    """The reply of the first generation in an `LLMResult`, and what the provider said about it, in whatever form."""
    result = fields_of(response)
    generations = items_of(items[0]) if (items := items_of(result.get("generations"))) else None  # one for each prompt
    own = fields_of(generations[0]) if generations else {}
    message, told = own.get("message"), (own.get("generation_info"), result.get("llm_output"))
    if message is None:
        text = text_of(own.get("text"))
        return PayloadMessage("ai", "" if text is None else log.count(text)), notes_of(told)
    taken, fields = _plain_message(message, log) or take(message, log), fields_of(message)
    if type(taken) is PayloadMessage:
        content = fields.get("content")
        blocks = content if type(content) is list else None
        taken.searched = reports_search((fields.get("additional_kwargs"), fields.get("response_metadata"), blocks))
    return taken, notes_of((*told, fields.get("response_metadata"), fields.get("usage_metadata")))


def end_of_stream(chunk: Any) -> tuple[bool, Sequence[Mapping[str, Any]]]:
    """Whether the last chunk of a stream says that it is the last, and what the provider said with it."""
    own = fields_of(chunk)
    message = fields_of(own.get("message"))
    notes = notes_of((message.get("response_metadata"), own.get("generation_info")))
    return text_of(message.get("chunk_position")) == "last", notes


def rewritten_documents(log: RequestLog) -> list[tuple[Document, str]]:
    """The documents that were rewritten in place since they passed by, with their texts as they are now."""
    changed = []
    for document, snapshot in list(log.kept.values()):
        if type(document) is not LangChainDocument or document.__dict__["page_content"] is not snapshot.text:
            fields = text_keyed(document) if is_dict(document) else fields_of(document)
            text = text_of(fields.get("page_content"))
            if text is not None and text != snapshot.text:
                changed.append((snapshot, log.count(text)))
    return changed


def _read_document(
    copying: Copying | RequestLog, value: Any, _: int, fields: Mapping[str, Any] | None = None
) -> Snapshot:
    kept, identity = copying.kept, id(value)
    if identity in kept:
        return kept[identity][1]
    if fields is None:
        fields = fields_of(value)
    text, own_id, given = fields.get("page_content"), fields.get("id"), fields.get("metadata")
    if type(text) is not str and (text := text_of(text)) is None:
        return Opaque()
    metadata = small_copy(given) or kept_entries(given, texts=copying.texts)
    document = Document(text, own_id if own_id is None else text_of(own_id), metadata)
    copying.texts[id(text)] = text
    copying.parts += 3 * len(metadata)  # names and small texts
    kept[identity] = value, document
    return document


def _read_message(copying: Copying, value: Any, depth: int) -> Snapshot:
    if not copying.whole:
        return MESSAGE
    own = fields_of(value)
    beside, content = own.get("additional_kwargs"), own.get("content")
    kind = (text_of(own.get("type")) or "").lower().removesuffix("messagechunk")
    kind = (text_of(own.get("role")) or "").lower() if kind == "chat" else kind
    message = PayloadMessage(ROLES.get(kind, "human"), _content(copying, content, depth))
    if type(content) is list:
        message.unread = [_end_of(block) for block in content[:MAX_BLOCKS] if _is_unread(block)]
    if beside is not None and is_dict(beside) and (more := text_keyed(beside).get("documents")) is not None:
        message.documents = copying.copy(more, depth + 1)
    if message.role == "ai":
        calls = items_of(own.get("tool_calls")) or []
        copying.parts += 4 * len(calls)
        message.calls = [_call(copying, text_keyed(call), depth) for call in calls[:MAX_BLOCKS] if is_dict(call)]
    elif message.role == "tool":
        message.call_id = text_of(own.get("tool_call_id"))
        message.failed = own.get("status") == "error"
        message.artifact = copying.copy_hidden(own.get("artifact"), depth + 1)
    return message


def _content(copying: Copying, content: Any, depth: int) -> Any:
    text = text_of(content)
    if text is not None:
        return copying.copy(text, depth)
    blocks = (items_of(content) or ())[:MAX_BLOCKS]
    shown = [one for one in blocks if not (is_dict(one) and text_of(text_keyed(one).get("type")) in MEDIA)]
    taken = [copying.copy(one, depth + 1) for one in shown]
    copying.parts += len(taken)
    return taken


def _is_unread(block: Any) -> bool:
    own = block if type(block) is dict else {}
    kind, source = own.get("type"), own.get("source")
    is_file = kind == "document" and type(source) is dict and source.get("type") not in {"text", "content"}
    return is_file or (kind in UNREAD and type(own.get("text")) is not str)


def _end_of(block: dict[Any, Any], depth: int = 0) -> str:
    """The end of a picture's data, or of its address."""
    texts = [block[key] for key in _DATA if type(block.get(key)) is str]
    inner = [_end_of(each, depth + 1) for each in block.values() if type(each) is dict and depth < _MAX_DEPTH]
    return next((text[-_END:] for text in (*texts, *inner) if text), "")


def _call(copying: Copying, call: Mapping[str, Any], depth: int) -> Call:
    return Call(text_of(call.get("name")), text_of(call.get("id")), copying.copy(call.get("args"), depth + 1))


def messages_of(prompt: Any) -> list[Any]:
    """The messages of a prompt as the framework has them; of one that is a text, this."""
    own = fields_of(prompt)
    messages = own.get("messages")
    if messages is not None:
        return items_of(messages) or []
    text = text_of(own.get("text"))
    return [] if text is None else [("human", text)]


def _read_fields(copying: Copying, given: dict[Any, Any], depth: int) -> Snapshot:
    if dict.__len__(given) > MAX_NODES_OF_STEP:
        return CUT
    value = text_keyed(given)
    if text_of(value.get("page_content")) is not None:  # what a document becomes when a checkpoint is read back
        document = _read_document(copying, given, depth, value)
        names = [name for name in value if name not in _OF_DOCUMENT] if copying.whole else ()
        beside = {name: copying.copy(value[name], depth + 1) for name in names}  # what a prompt is filled with
        return {**beside, "page_content": document} if beside else document
    if copying.whole:
        kind = text_of(value.get("type"))
        if kind == "tool_call" and "args" in value:
            return _call(copying, value, depth)
        if kind == "base64":
            return Opaque()
        role = (text_of(value["role"]) if "role" in value else kind) or ""
        if role.lower() in ROLES and "content" in value:
            return PayloadMessage(ROLES[role.lower()], _content(copying, value["content"], depth))
    return copying.fields(given, depth)


def _read_tuple(copying: Copying, value: tuple[Any, ...], depth: int) -> Snapshot:
    if copying.whole and tuple.__len__(value) == 2:  # noqa: PLR2004  (role, content)
        given, content = tuple.__iter__(value)
        if (role := (text_of(given) or "").lower()) in ROLES:
            return PayloadMessage(ROLES[role], _content(copying, content, depth))
    return copying.items(value, depth)


SNAPSHOTS = Snapshots(
    {
        LangChainDocument: _read_document,
        BaseMessage: _read_message,
        PromptValue: lambda copying, value, depth: (
            copying.items(messages_of(value), depth + 1) if copying.whole else PROMPT
        ),
        BaseModel: lambda copying, value, depth: copying.state(fields_of(value), depth),
        dict: _read_fields,
        tuple: _read_tuple,
    },
    marks=("page_content", "content", "role", "type"),
    hidden={"Command"},  # LangGraph's steers a graph and holds no question
    in_steps={
        **dict.fromkeys((*_ROLE_OF, AIMessageChunk, ToolMessage), MESSAGE),
        **dict.fromkeys((ChatPromptValue, StringPromptValue), PROMPT),
    },
)
take = SNAPSHOTS.take
