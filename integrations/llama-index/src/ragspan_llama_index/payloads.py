"""What is noted of a span when it begins and when it ends: plain data from its arguments and its result.

Runs on the request path. The program may change its objects afterwards, so structures are copied; texts are shared. A payload
maps names of `Step`'s attributes to values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from ragspan.capturing import MAX_BLOCKS, PART_BYTES, EventKind, RequestLog
from ragspan.messages import MAX_MESSAGE, TOOL_ERROR, ErrorReport
from ragspan.request import Call, notes_of, reports_search
from ragspan.safe_copy import (
    fields_of,
    is_dict,
    is_list,
    items_of,
    number_of,
    plain_scalar,
    text_keyed,
    texts_among,
)
from ragspan.safe_copy import text_of as text_of_plain
from ragspan_llama_index.classes import Role, facts_about, has_base
from ragspan_llama_index.files import FILES, File, file_in
from ragspan_llama_index.nodes import nodes_among, nodes_in
from ragspan_llama_index.objects import DATA, event_fields, text_in, text_of

Asked: TypeAlias = Sequence[tuple[str, str]]
"""Texts that a call was given, by the name of the argument or field; an empty name means the question itself."""

Prompt: TypeAlias = Sequence[tuple[str | None, Sequence[str | File], Sequence[Any], Any]]
"""What a model was given: of each message the role, the texts and files, the calls of tools, as the framework or a provider has them,
and the id of the call that it answers. A text that is not a message has no role."""

CONVERSATIONS: Final = ("chat_history", "messages")
"""Fields of a workflow's start event that hold messages."""

_Arguments: TypeAlias = Mapping[str, Any]
_PLAIN = (str, int, float, bool, list, dict, type(None))


def texts_given(arguments: _Arguments, log: RequestLog) -> Sequence[str]:
    """The nodes as a synthesizer wrote them for the model."""
    given = argument(arguments, "text_chunks", 1)
    taken: Sequence[str] = (items_of(given) or ()) if is_list(given) else ()
    for text in taken:
        if type(text) is not str:
            taken = texts_among(taken)
            break
    log.texts.update(zip(map(id, taken), taken, strict=True))
    return taken


def reply_in(response: Any, log: RequestLog, *, inside_synthesis: bool) -> dict[str, Any]:
    """What a model's provider said about its reply."""
    fields = fields_of(response)
    raw, beside, message = fields.get("raw"), fields.get("additional_kwargs"), fields.get("message")
    payload: dict[str, Any] = {}
    if message is not None:
        _, payload["asked_for"] = _contents_of(message, log)
        if reports_search((fields_of(message).get("additional_kwargs"),)):
            payload["searched"] = True
    if raw is not None or not (type(beside) is dict and not beside):  # else nothing was said
        payload["reply"] = notes_of((raw, beside))
        if reports_search((raw, beside)):
            payload["searched"] = True
    if inside_synthesis:
        payload["said"] = _text_of(response, log)
    return payload


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
    text = given if type(given) is str else text_of_plain(given)
    if text is not None:
        return ((None, (log.count(text),), (), None),)
    parts = []
    for message in (items_of(given) or ()) if is_list(given) else ():
        own = fields_of(message)
        texts, calls = _contents_of(message, log)
        for each in texts:
            if isinstance(each, str):
                log.count(each)
            else:
                log.parts += len(each.data or b"") // PART_BYTES
        call_id = text_of_plain(_entries(own.get("additional_kwargs")).get("tool_call_id"))
        if texts or calls or call_id:
            parts.append((_word(own.get("role")), texts, calls, call_id))
        log.parts += len(texts) + 4 * len(calls)
    log.parts += 4 * len(parts)
    return parts


def _word(value: Any) -> str | None:
    """A text, or the one that an enumeration's member stands for."""
    found = plain_scalar(value)
    return found if type(found) is str else None


def _entries(value: Any) -> Mapping[str, Any]:
    return text_keyed(value) if value is not None and is_dict(value) else {}


def _contents_of(message: Any, log: RequestLog) -> tuple[list[str | File], list[Call]]:
    """The texts and files of a message, and the tool calls in it, as the framework has them or as the provider has."""
    own = fields_of(message)
    texts: list[str | File] = []
    calls: list[Any] = []
    for block in (items_of(own.get("blocks")) or ())[:MAX_BLOCKS]:
        fields = fields_of(block)
        text = text_of_plain(fields.get("text"))
        if text is not None:
            if text:
                texts.append(text)
        elif (kind := text_of_plain(fields.get("block_type"))) == "tool_call":
            calls.append(block)
        elif kind in FILES:
            texts.append(file_in(fields))
        elif is_list(inner := fields.get("content")):  # a block that may be cited
            held = [fields_of(one) for one in items_of(inner) or ()]
            texts += [text for one in held if (text := text_of_plain(one.get("text")))]
            texts += [file_in(one) for one in held if text_of_plain(one.get("block_type")) in FILES]
    given = None if calls else _entries(own.get("additional_kwargs")).get("tool_calls")
    found = items_of(given) if is_list(given) else None
    return texts, [_call(call, log) for call in (calls if found is None else found)]


def files_in(message: Any) -> list[File]:
    """The files in a message; none in anything else."""
    if type(message) is str:
        return []
    own = map(fields_of, items_of(fields_of(message).get("blocks")) or ())
    return [file_in(fields) for fields in own if text_of_plain(fields.get("block_type")) in FILES]


def _call(call: Any, log: RequestLog) -> Call:
    """A tool call as the framework has it, or as a provider has; an agent's prompts repeat it."""
    known = log.kept.get(id(call))
    if known is not None and type(known[1]) is Call:
        return known[1]
    own = text_keyed(call) if is_dict(call) else fields_of(call)
    inner = own.get("function")
    function: Mapping[str, Any] = _entries(inner) or fields_of(inner)
    names = (own.get("tool_name"), function.get("name"), own.get("name"))
    given = next(
        (one for one in (own.get("tool_kwargs"), function.get("arguments"), own.get("input")) if one is not None), None
    )
    name = next((text for one in names if (text := text_of_plain(one))), None)
    taken = Call(name, _first_text(own, ("tool_call_id", "tool_id", "id")), DATA.take(given, log))
    log.kept[id(call)] = (call, taken)
    return taken


# Starts


def argument(arguments: Mapping[str, Any], name: str, place: int) -> Any:
    """An argument by its name, or by its place where a program's own method names it otherwise."""
    if name in arguments:
        return arguments[name]
    return next(islice(arguments.values(), place, None), None)


def _first(arguments: Mapping[str, Any]) -> Any:
    for value in arguments.values():
        return value
    return None


def asked_by_event(event: Any) -> Asked:
    """What a workflow was started with: the texts among its start event's fields."""
    fields = event_fields(event)
    asked = [(name, text_in(value)) for name, value in fields.items() if name not in CONVERSATIONS]
    asked += [(name, _last_of_user(fields[name])) for name in CONVERSATIONS if name in fields]
    return tuple((name, text) for name, text in asked if text is not None)


def _last_of_user(messages: Any) -> str | None:
    for message in reversed((items_of(messages) or ()) if is_list(messages) else ()):
        own = text_keyed(message) if is_dict(message) else fields_of(message)
        if _word(own.get("role")) == "user":
            return text_in(message)
    return None


def _start_of_call(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    if "start_event" not in arguments:
        given = _first(arguments)
        if type(given) is str:
            log.texts[id(given)] = given
            return {"asked": (("", given),)}
        return {"asked": _asked(given, log), "files": files_in(given)}
    event = arguments["start_event"]
    asked = asked_by_event(event)
    for _, text in asked:
        log.count(text)
    name = text_of_plain(fields_of(instance).get("name"))
    files = [file for value in event_fields(event).values() for file in files_in(value)]
    return {"is_run": True, "asked": asked, "is_resumed": event is None, "agent_name": name, "files": files}


def _start_of_synthesis(arguments: _Arguments, _: Any, log: RequestLog) -> dict[str, Any]:
    log.about["synthesis"] = True
    asked = _asked(argument(arguments, "query", 0), log)
    return {"asked": asked, "given": nodes_in(argument(arguments, "nodes", 1), log)}


def _start_of_chunks(arguments: _Arguments, _: Any, log: RequestLog) -> dict[str, Any]:
    log.about["synthesis"] = True
    return {"asked": _asked(argument(arguments, "query_str", 0), log), "texts": texts_given(arguments, log)}


def _start_of_search(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    about = fields_of(instance)
    store, top_k = about.get("_vector_store"), about.get("_similarity_top_k", about.get("similarity_top_k"))
    return {
        "asked": _asked(_first(arguments), log),
        "top_k": top_k if top_k is None else number_of(top_k),
        "source": None if store is None else _first_text(fields_of(store), _STORES),
    }


def _start_of_postprocessing(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    return {
        "given": nodes_in(argument(arguments, "nodes", 0), log),
        "query": text_in(argument(arguments, "query_bundle", 1)),
        "model": _model_name(instance),
        "top_k": number_of(fields_of(instance).get("top_n")),
    }


def _start_of_tool(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    own = fields_of(instance)
    payload: dict[str, Any] = {"tool_name": text_of_plain(fields_of(own.get("_metadata")).get("name"))}
    given = (
        next(iter(items_of(arguments.get("args", ())) or ()), None) if "args" in arguments else arguments.get("input")
    )
    named = arguments.get("kwargs")
    if is_dict(named) and named:  # what else than plain values a tool is given does not come from a model
        plain = {name: value for name, value in _entries(named).items() if any(type(value) is one for one in _PLAIN)}
        payload["arguments"] = DATA.take(plain, log)
    elif type(given) is str or type(given) is dict:
        payload["arguments"] = DATA.take(given, log)
    return payload


def _start_of_model(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    given = None
    for name, value in arguments.items():
        if name == "kwargs":  # the framework's wrapper of `complete` names no argument
            given = _entries(value).get("prompt")
        elif name != "args" or value:
            given = value[0] if name == "args" else value
            break
    return {"model": _model_name(instance), "prompt": prompt_in(given, log)}


def _start_of_asking(arguments: _Arguments, instance: Any, log: RequestLog) -> dict[str, Any]:
    given = _entries(arguments.get("prompt_args"))
    return {"model": _model_name(instance), "filled": list(map(log.count, texts_among(given.values())))}


def _model_name(instance: Any) -> str | None:
    return _first_text(fields_of(instance), _MODELS)  # the metadata property may ask the provider's server


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these fields that is a text and not empty."""
    for name in names:
        value = fields.get(name)
        if value is not None and (text := text_of_plain(value)):
            return text
    return None


_MODELS = ("model", "model_name")
_STORES = ("collection_name", "index_name", "table_name")


def _asked(given: Any, log: RequestLog) -> Asked:
    """What a query, a chat turn or a search was given: a text, a `QueryBundle` or a `ChatMessage`."""
    text = text_in(given)
    if text is None:
        return ()
    log.texts[id(text)] = text
    return (("", text),)


# Ends


def end_of_tool(result: Any, log: RequestLog) -> dict[str, Any]:
    own = fields_of(result)
    content = text_in(result) if "blocks" in own else text_of_plain(own.get("content"))
    payload: dict[str, Any] = {}
    if content is not None:
        payload["answer"] = log.count(content)
    if own.get("is_error") is True:  # the tool's caller made a result of the error
        payload["noted"] = ErrorReport(type=TOOL_ERROR, message=(content or "")[:MAX_MESSAGE], stacktrace="")
    name = text_of_plain(own.get("tool_name"))
    if name:
        payload["tool_name"] = name
    found = nodes_among(own.get("raw_output"))
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
