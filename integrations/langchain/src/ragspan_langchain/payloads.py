"""Takes snapshots of LangChain's payloads, on the request path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_, itemgetter
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from pydantic import BaseModel

from ragspan import field_names
from ragspan.capturing import CUT, MAX_BLOCKS, MAX_NODES_OF_STEP, Copying, Opaque, RequestLog, Snapshot, Snapshots
from ragspan.request import (
    MEDIA,
    MESSAGE,
    ROLES,
    UNREAD,
    Call,
    Document,
    FilledPrompt,
    PayloadMessage,
    notes_of,
    reports_search,
)
from ragspan.safe_copy import (
    fields_of,
    is_dict,
    items_of,
    kept_entries,
    small_copies,
    text_keyed,
    text_of,
)

_END = 64
_DATA = ("data", "base64", "file_data", "url", "image_url", "file_id", "file_uri", "uri")
_MAX_DEPTH = 3
_MAX_FOUND = 20_000

PROMPT = Opaque()
"""Replaces a prompt in the payload of a step."""
_ROLE_OF = {HumanMessage: "human", SystemMessage: "system", AIMessage: "ai"}
_own_messages = {id(kind): role for kind, role in _ROLE_OF.items()}  # classes of a program's own are not hashed


def take_each(values: Iterable[Any], log: RequestLog) -> list[Snapshot]:
    """Snapshots of a prompt's messages or documents, each as a payload of its own: none is left out."""
    return [_plain_message(value, log) or SNAPSHOTS.take(value, log) for value in values]


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


def filled_prompt(prompt: Any, log: RequestLog) -> FilledPrompt:
    """What a template gave out, to be read with the prompt of the next model, or when the request ends."""
    filled = FilledPrompt(given=_messages_of(prompt))
    log.about.setdefault("filled", []).append(filled)
    return filled


def take_prompt(given: Iterable[Any], log: RequestLog) -> list[Snapshot]:
    """Snapshots of a model's prompt, for the templates that gave it out as well."""
    values = list(given)
    taken = take_each(values, log)
    filled = log.about.get("filled")
    if filled:
        take_filled(filled, log, values, taken)
    return taken


def take_filled(
    filled: list[FilledPrompt], log: RequestLog, given: Sequence[Any] = (), taken: Sequence[Snapshot] = ()
) -> None:
    """Take snapshots of what templates gave out; those of the messages that a model is given are taken already."""
    while filled:
        prompt = filled.pop()
        is_given = len(prompt.given) == len(given) and all(map(is_, prompt.given, given))
        prompt.take(taken if is_given else take_each(prompt.given, log))


def take_found(found: Any, log: RequestLog) -> Snapshot:
    """A snapshot of what a retriever found: mostly documents of the framework's own class, which are read in loops of C."""
    if type(found) is not list or not 0 < len(found) <= _MAX_FOUND or not _OWN.issuperset(map(id, map(type, found))):
        return SNAPSHOTS.take(found, log)
    try:
        texts, ids, metadata = zip(*map(_FIELDS, map(vars, found)), strict=True)
    except KeyError:
        return SNAPSHOTS.take(found, log)
    keys = set(map(id, found))
    is_plain = _TEXTS.issuperset(map(type, texts)) and _IDS.issuperset(map(type, ids))
    copies = (
        small_copies(metadata) if is_plain and len(keys) == len(found) and log.kept.keys().isdisjoint(keys) else None
    )
    if copies is None:
        return [_read_document(log, each, 0) for each in found]
    documents = list(map(Document, texts, ids, copies))
    log.kept.update(zip(map(id, found), zip(found, documents, strict=True), strict=True))
    log.texts.update(zip(map(id, texts), texts, strict=True))
    log.parts += 3 * sum(map(len, copies))  # names and small texts
    return documents


_OWN = frozenset({id(LangChainDocument)})
_FIELDS = itemgetter("page_content", "id", "metadata")
_TEXTS, _IDS = frozenset({str}), frozenset({str, type(None)})


def take_reply(response: Any, log: RequestLog) -> tuple[PayloadMessage, Sequence[Mapping[str, Any]]]:
    """The reply of the first generation in an `LLMResult`, and what the provider said about it."""
    result = fields_of(response)
    generations = items_of(items[0]) if (items := items_of(result.get("generations"))) else None  # one for each prompt
    own = fields_of(generations[0]) if generations else {}
    message = own.get("message")
    if message is None:
        text = text_of(own.get("text"))
        return PayloadMessage("ai", "" if text is None else log.count(text)), notes_of(
            provider_metadata_in(result, own, {})
        )
    taken, fields = _plain_message(message, log) or SNAPSHOTS.take(message, log), fields_of(message)
    if type(taken) is PayloadMessage:
        content = fields.get("content")
        with_reply = (
            fields.get("additional_kwargs"),
            fields.get("response_metadata"),
            content if type(content) is list else None,
        )
        taken.searched = reports_search(with_reply)
    return taken, notes_of(provider_metadata_in(result, own, fields))


def provider_metadata_in(
    result: Mapping[str, Any], generation: Mapping[str, Any], message: Mapping[str, Any]
) -> tuple[Any, ...]:
    """What the provider said about its reply, in whatever form; the arguments are the fields of LangChain's objects."""
    own = generation.get("generation_info"), result.get("llm_output")
    return (*own, message.get("response_metadata"), message.get("usage_metadata"))


def end_of_stream(chunk: Any) -> tuple[bool, Sequence[Mapping[str, Any]]]:
    """Whether the last chunk of a stream says that it is the last, and what the provider said with it."""
    own = fields_of(chunk)
    message = fields_of(own.get("message"))
    notes = notes_of((message.get("response_metadata"), own.get("generation_info")))
    return text_of(message.get("chunk_position")) == "last", notes


def rewritten_documents(log: RequestLog) -> list[tuple[Document, str]]:
    """The documents that were rewritten in place since they passed by, with their texts as they are now."""
    others = [
        pair
        for pair in list(log.kept.values())
        if type(pair[0]) is not LangChainDocument or pair[0].__dict__.get("page_content") is not pair[1].text
    ]
    changed = []
    for document, snapshot in others:
        fields = text_keyed(document) if is_dict(document) else fields_of(document)
        text = text_of(fields.get("page_content"))
        if text is not None and text != snapshot.text:
            changed.append((snapshot, log.count(text)))
    return changed


def _read_document(
    copying: Copying | RequestLog, value: Any, _: int, fields: Mapping[str, Any] | None = None
) -> Snapshot:
    known = copying.kept.get(id(value))
    if known is not None:
        return known[1]
    fields = fields_of(value) if fields is None else fields
    try:  # mostly they are there, and asking whether they are takes longer
        text, own_id, given = fields["page_content"], fields["id"], fields["metadata"]
    except KeyError:
        text, own_id, given = fields.get("page_content"), fields.get("id"), fields.get("metadata")
    if type(text) is not str and (text := text_of(text)) is None:
        return Opaque()
    metadata = kept_entries(given, texts=copying.texts)
    document = Document(text, None if own_id is None else text_of(own_id), metadata)
    copying.texts[id(text)] = text
    copying.parts += 3 * len(metadata)  # names and small texts
    copying.kept[id(value)] = value, document
    return document


def _read_message(copying: Copying, value: Any, depth: int) -> Snapshot:
    if not copying.whole:
        return MESSAGE
    own = fields_of(value)
    beside, content = own.get("additional_kwargs"), own.get("content")
    if type(content) is str:  # mostly
        copying.texts[id(content)] = content
        message = PayloadMessage(_role_of(own), content)
    else:
        message = PayloadMessage(_role_of(own), _content(copying, content, depth))
        if type(content) is list:
            message.unread = [_end_of(block) for block in content[:MAX_BLOCKS] if _is_unread(block)]
    if beside is not None and (type(beside) is not dict or beside):
        more = text_keyed(beside) if is_dict(beside) else {}
        if "documents" in more:
            message.documents = copying.copy(more["documents"], depth + 1)
    if message.role == "ai":
        message.calls = _calls(copying, own.get("tool_calls"), depth)
    elif message.role == "tool":
        message.call_id = text_of(own.get("tool_call_id"))
        message.failed = own.get("status") == "error"
        message.artifact = copying.copy_hidden(own.get("artifact"), depth + 1)
    return message


def _role_of(message: Mapping[str, Any]) -> str:
    """The role of a message, also of a streamed one, or of one that has its role in a field."""
    kind = text_of(message.get("type")) or ""
    role = ROLES.get(kind)
    if role is not None:
        return role
    kind = kind.lower().removesuffix("messagechunk")
    return ROLES.get((text_of(message.get("role")) or "").lower() if kind == "chat" else kind, "human")


def _content(copying: Copying, content: Any, depth: int) -> Any:
    text = text_of(content)
    if text is not None:
        return copying.copy(text, depth)
    blocks = items_of(content) if issubclass(type(content), list) else None
    taken = [copying.copy(block, depth + 1) for block in (blocks or ())[:MAX_BLOCKS] if not _is_media(block)]
    copying.parts += len(taken)
    return taken


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
    if not items:
        return None
    copying.parts += 4 * len(items)
    return [_call(copying, text_keyed(call), depth) for call in items[:MAX_BLOCKS] if is_dict(call)] or None


def _call(copying: Copying, call: Mapping[str, Any], depth: int) -> Call:
    return Call(text_of(call.get("name")), text_of(call.get("id")), copying.copy(call.get("args"), depth + 1))


def _read_prompt(copying: Copying, value: Any, depth: int) -> Snapshot:
    return copying.items(_messages_of(value), depth + 1) if copying.whole else PROMPT


def _messages_of(prompt: Any) -> list[Any]:
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
    if "page_content" in value and text_of(value["page_content"]) is not None:
        # what a document becomes when a checkpoint is read back; beside a question it is what a chain was called with
        document = _read_document(copying, given, depth, value)
        asked = {key: value[key] for key in field_names.QUESTION + field_names.OFTEN_QUESTION if key in value}
        fields = copying.fields(asked, depth) if asked else None
        return {**fields, "page_content": document} if type(fields) is dict else document
    if copying.whole:
        kind = text_of(value["type"]) if "type" in value else None
        if kind == "tool_call" and "args" in value:
            return _call(copying, value, depth)
        if kind == "base64":
            return Opaque()
        role = text_of(value.get("role")) if "role" in value else kind
        if role is not None and (role := role.lower()) in ROLES and "content" in value:
            return PayloadMessage(ROLES[role], _content(copying, value["content"], depth))
    return copying.fields(given, depth)


def _read_tuple(copying: Copying, value: tuple[Any, ...], depth: int) -> Snapshot:
    if copying.whole and tuple.__len__(value) == 2:  # noqa: PLR2004  (role, content)
        given, content = tuple.__iter__(value)
        if (role := text_of(given)) is not None and role.lower() in ROLES:
            return PayloadMessage(ROLES[role.lower()], _content(copying, content, depth))
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
    marks=("page_content", "content", "role", "type"),
    hidden={"Command"},  # LangGraph's steers a graph and holds no question
    in_steps={
        **dict.fromkeys((*_ROLE_OF, AIMessageChunk, ToolMessage), MESSAGE),
        **dict.fromkeys((ChatPromptValue, StringPromptValue), PROMPT),
    },
)
