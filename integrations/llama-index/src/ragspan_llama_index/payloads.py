"""What is noted of a span when it begins and when it ends: plain data from its arguments and its result.

Runs on the request path. The program may change its objects afterwards, so structures are copied; texts are shared. A payload
maps names of `Step`'s attributes to values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from ragspan.capturing.log import EventKind, RequestLog
from ragspan_llama_index.objects import Role, facts_about, fields_of, has_base, nodes_among, text_in, text_of

Asked: TypeAlias = Sequence[tuple[str, str]]
"""Texts that a call was given, by the name of the argument or field; an empty name means the question itself."""

Prompt: TypeAlias = Sequence[tuple[str | None, Sequence[str], Sequence[Any], Any]]
"""What a model was given: of each message the role, the texts, the calls of tools, as the framework or a provider has them,
and the id of the call that it answers. A text that is no message has no role."""

CONVERSATIONS: Final = ("chat_history", "messages")
"""Fields of a workflow's start event that hold messages."""

NodeSnapshot: TypeAlias = tuple[int, Any, str | None, str, Mapping[str, Any], type | None, dict[str, Any] | None]
"""A node as it was: the identity of the object that goes from step to step, score, id, text and metadata; and, where its
text for the model is not known otherwise, its class and all of its fields."""

_Arguments: TypeAlias = Mapping[str, Any]
_PLAIN = frozenset({str, int, float, bool, list, dict, type(None)})


def texts_given(arguments: _Arguments, log: RequestLog) -> Sequence[str]:
    """The nodes as a synthesizer wrote them for the model."""
    given = argument(arguments, "text_chunks", 1)
    if not isinstance(given, (list, tuple)):
        return ()
    taken = [text for text in given if isinstance(text, str)]
    log.texts.update(zip(map(id, taken), taken, strict=True))
    return taken


def reply_in(response: Any, log: RequestLog, *, inside_synthesis: bool) -> dict[str, Any]:
    """What a model's provider told about its reply."""
    fields = getattr(response, "__dict__", {})  # the framework's classes take long to look an attribute up
    payload: dict[str, Any] = {"reply": (fields.get("raw"), fields.get("additional_kwargs"))}
    message = fields.get("message")
    if message is not None:
        _, payload["asked_for"] = _texts_and_calls(message)
    if inside_synthesis:
        payload["said"] = _text_of(response, log)
    return payload


def nodes_in(items: Any, log: RequestLog) -> Sequence[NodeSnapshot]:
    """The nodes of a list as they are now, with or without scores: their identities, and their own texts."""
    if not isinstance(items, (list, tuple)):
        return ()
    kept, texts = log.kept, log.texts
    taken: list[NodeSnapshot] = []
    for item in items:
        try:  # the framework's classes take long to look an attribute up
            fields = item.__dict__
            score, fields = fields["score"], fields["node"].__dict__
            name, text, metadata = fields["id_"], fields["text"], fields["metadata"].copy()
        except (AttributeError, KeyError, TypeError):
            score = getattr(item, "score", None)
            name, text, metadata = _read(getattr(item, "node", item))
        identity = id(item)
        kept[identity] = (item, text)
        texts[id(text)] = text
        taken.append((identity, score, name, text, metadata, None, None))
    return taken


def whole_nodes_in(items: Iterable[Any], log: RequestLog) -> Sequence[NodeSnapshot]:
    """The same with all fields, of nodes whose text for the model is not known otherwise."""
    taken = []
    for snapshot, item in zip(nodes_in(list(items), log), items, strict=True):
        node = getattr(item, "node", item)
        kind, fields = type(node), None
        if has_base(kind, "BaseNode"):  # else its plain text has to do
            fields = {**vars(node), "metadata": snapshot[4], "embedding": None}
        taken.append((*snapshot[:5], kind, fields))
    return taken


def text_shown(kind: type, fields: dict[str, Any]) -> str | None:
    """The text of such a node with metadata and template, as the framework writes it into prompts; for the worker."""
    from llama_index.core.schema import MetadataMode

    try:
        node: Any = object.__new__(kind)
        own = {"__dict__": fields, "__pydantic_fields_set__": set(fields)}
        for name, value in {**own, "__pydantic_extra__": None, "__pydantic_private__": None}.items():
            object.__setattr__(node, name, value)  # as pydantic itself copies one
        return str(node.get_content(metadata_mode=MetadataMode.LLM))
    except Exception:  # noqa: BLE001  a program's own node class, or its broken template
        return None


def _read(node: Any) -> tuple[str | None, str, dict[str, Any]]:
    """Id, text and metadata of a node without a text field, or of a class that is not the framework's."""
    text = getattr(node, "text", None)
    if not isinstance(text, str):
        text = getattr(getattr(node, "text_resource", None), "text", None)
    metadata = dict(getattr(node, "metadata", None) or ())
    return getattr(node, "id_", None), text if isinstance(text, str) else "", metadata


def note_work(log: RequestLog, span_id: str, arguments: Mapping[str, Any]) -> None:
    """A step of a workflow begins. One that waited inside before an interruption is run again from its beginning."""
    payload = None
    if log.about.get("is_resumed"):
        event = next((value for value in arguments.values() if has_base(type(value), "StartEvent")), None)
        payload = {"asked": asked_by_event(event)}
    log.note(EventKind.WORK, span_id, None, payload)


def hands_on(event: Any) -> bool:
    """Whether a step that returned this event has given work to another one, and waits for nobody."""
    bases = facts_about(type(event)).bases
    return "Event" in bases and bases.isdisjoint({"InputRequiredEvent", "StopEvent"})


def is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a step that is not asynchronous, in a thread
        return False
    return task is not None and getattr(task, "cancelling", lambda: 1)() > 0  # before Python 3.11 a task does not tell


def prompt_in(given: Any, log: RequestLog) -> Prompt:
    """What a model was given: a text, or messages."""
    if isinstance(given, str):
        return ((None, (log.count(given),), (), None),)
    parts = []
    for message in given if isinstance(given, (list, tuple)) else ():
        role, more = getattr(message, "role", None), getattr(message, "additional_kwargs", None)
        texts, calls = _texts_and_calls(message)
        for text in texts:
            log.count(text)
        call_id = more.get("tool_call_id") if more else None
        if texts or calls or call_id:
            parts.append((getattr(role, "value", role), texts, calls, call_id))
    return parts


def _texts_and_calls(message: Any) -> tuple[list[str], list[Any]]:
    """The texts of a message, and the tool calls in it, as the framework has them or as the provider has."""
    texts: list[str] = []
    calls: list[Any] = []
    for block in getattr(message, "blocks", ()):
        fields = getattr(block, "__dict__", {})  # as above
        text = fields.get("text")
        if isinstance(text, str):
            if text:
                texts.append(text)
        elif fields.get("block_type") == "tool_call":
            calls.append(block)
        elif isinstance(inner := fields.get("content"), list):  # a block that may be cited
            texts += [text for one in inner if isinstance(text := getattr(one, "text", None), str) and text]
    more = None if calls else getattr(message, "additional_kwargs", None)
    given = more.get("tool_calls") if more else None
    return texts, given if isinstance(given, list) else calls


# Starts


def argument(arguments: Mapping[str, Any], name: str | None, place: int) -> Any:
    """An argument by its name, or by its place where a program's own method names it otherwise."""
    if name is not None and name in arguments:
        return arguments[name]
    for value in arguments.values() if place == 0 else islice(arguments.values(), place, None):
        return value
    return None


def asked_by_event(event: Any) -> Asked:
    """What a workflow was started with: the texts among its start event's fields."""
    fields = fields_of(event)
    asked = [(name, text_in(value)) for name, value in fields.items() if name not in CONVERSATIONS]
    asked += [(name, _last_of_user(fields[name])) for name in CONVERSATIONS if name in fields]
    return tuple((name, text) for name, text in asked if text is not None)


def _last_of_user(messages: Any) -> str | None:
    if not isinstance(messages, (list, tuple)):
        return None
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else getattr(message, "role", None)
        if getattr(role, "value", role) == "user":
            return text_in(message)
    return None


def _start_of_call(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    if "start_event" not in arguments:
        return {"asked": _asked(argument(arguments, None, 0), log)}
    event = arguments["start_event"]
    asked = asked_by_event(event)
    for _, text in asked:
        log.count(text)
    name = getattr(instance, "__dict__", {}).get("name")
    return {"is_run": True, "asked": asked, "is_resumed": event is None, "agent_name": name}


def _start_of_synthesis(arguments: _Arguments, _: Any, log: RequestLog) -> dict[str, Any]:
    log.about["synthesis"] = True
    asked = _asked(argument(arguments, "query", 0), log)
    return {"asked": asked, "given": nodes_in(argument(arguments, "nodes", 1), log)}


def _start_of_chunks(arguments: _Arguments, _: Any, log: RequestLog) -> dict[str, Any]:
    log.about["synthesis"] = True
    return {"asked": _asked(argument(arguments, "query_str", 0), log), "texts": texts_given(arguments, log)}


def _start_of_search(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    about = getattr(instance, "__dict__", {})
    store = getattr(about.get("_vector_store"), "__dict__", None)
    source = None
    if store is not None:
        source = store.get("collection_name") or store.get("index_name") or store.get("table_name")
    return {
        "asked": _asked(argument(arguments, None, 0), log),
        "top_k": about.get("_similarity_top_k", about.get("similarity_top_k")),
        "source": source,
    }


def _start_of_postprocessing(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    about = getattr(instance, "__dict__", {})
    return {
        "given": nodes_in(argument(arguments, "nodes", 0), log),
        "query": text_in(argument(arguments, "query_bundle", 1)),
        "model": about.get("model") or about.get("model_name"),
        "top_k": about.get("top_n"),
    }


def _start_of_tool(arguments: _Arguments, instance: Any, _: RequestLog) -> dict[str, Any]:
    payload: dict[str, Any] = {"tool_name": getattr(getattr(instance, "metadata", None), "name", None)}
    given = next(iter(arguments.get("args", ())), None) if "args" in arguments else arguments.get("input")
    named = arguments.get("kwargs")
    if named:  # what else than plain values a tool is given does not come from a model
        payload["arguments"] = {name: value for name, value in named.items() if type(value) in _PLAIN}
    elif type(given) in {str, dict}:
        payload["arguments"] = given
    return payload


def _start_of_model(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    given = None
    for name, value in arguments.items():
        if name == "kwargs":  # the framework's wrapper of `complete` names no argument
            given = value.get("prompt")
        elif name != "args" or value:
            given = value[0] if name == "args" else value
            break
    return {"model": _model_name(instance), "prompt": prompt_in(given, log)}


def _start_of_asking(_: _Arguments, instance: Any, __: RequestLog) -> dict[str, Any]:
    return {"model": _model_name(instance)}


def _model_name(instance: Any) -> str | None:
    about = getattr(instance, "__dict__", {})  # the metadata property may ask the provider's server
    name = about.get("model") or about.get("model_name")
    return name if isinstance(name, str) else None


def _asked(given: Any, log: RequestLog) -> Asked:
    """What a query, a chat turn or a search was given: a text, a `QueryBundle` or a `ChatMessage`."""
    text = text_in(given)
    return () if text is None else (("", log.count(text)),)


# Ends


def end_of_tool(result: Any, log: RequestLog) -> dict[str, Any]:
    content = getattr(result, "content", None)
    payload: dict[str, Any] = {}
    if isinstance(content, str):
        payload["answer"] = log.count(content)
    found = nodes_among(getattr(result, "raw_output", None))
    if found:
        payload["found"] = nodes_in(found, log)
    return payload


def end_of_model(result: Any, log: RequestLog, *, inside_synthesis: bool) -> dict[str, Any]:
    payload = reply_in(result, log, inside_synthesis=inside_synthesis)
    if not inside_synthesis:
        payload["answer"] = _text_of(result, log)
    return payload


def _text_of(response: Any, log: RequestLog) -> str | None:
    text = text_of(response)
    return text if text is None else log.count(text)


STARTS: Final[Mapping[Role, Callable[[_Arguments, Any, RequestLog], dict[str, Any]]]] = {
    "call": _start_of_call,
    "synthesis": _start_of_synthesis,
    "chunks": _start_of_chunks,
    "search": _start_of_search,
    "postprocessing": _start_of_postprocessing,
    "tool": _start_of_tool,
    "model": _start_of_model,
    "asking": _start_of_asking,
}
