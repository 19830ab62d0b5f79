"""What is noted of a span when it begins and when it ends: plain data from its arguments and its result; texts are shared."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from ragspan.capturing import RequestLog
from ragspan.request import (
    ROLES,
    Call,
    Document,
    ModelStep,
    PayloadMessage,
    RerankStep,
    SearchStep,
    StepStart,
    SynthesisStep,
    ToolStep,
    notes_of,
    reports_search,
)
from ragspan.safe_copy import MAX_BLOCKS, Snapshot, fields_of, is_list, items_of, number_of, text_keyed, texts_among
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import DATA, event_fields, kind_of, text_in, text_of, word_of
from ragspan_llama_index.classes import ClassFacts, Role
from ragspan_llama_index.nodes import documents_of, nodes_among

Noted: TypeAlias = tuple[Snapshot, Any]
"""The payload of an event, and what else is noted of it."""
_Arguments: TypeAlias = Mapping[str, Any]
_TEXT = frozenset({str})
_MODELS = ("model", "model_name")
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_STORES = ("collection_name", "index_name", "table_name")
_FILES = frozenset({"document", "image", "audio", "video", "citable"})
_FILE_FIELDS = ("url", "path", "data", "image")
_TAIL = 64  # of a file's data or address, by which two are the same
_MOST_OF_FILE = 200_000  # bytes of a document in a block that are read: on the request path, in 0.7 ms at most


def argument(arguments: _Arguments, name: str, place: int) -> Any:
    """An argument by its name, or by its place where a program's own method names it otherwise."""
    return arguments[name] if name in arguments else next(islice(arguments.values(), place, None), None)


def texts_given(arguments: _Arguments, log: RequestLog) -> list[str]:
    """The nodes as a synthesizer wrote them for the model."""
    given = argument(arguments, "text_chunks", 1)
    taken = list(given) if type(given) is list else (items_of(given) or []) if is_list(given) else []
    if not _TEXT.issuperset(map(type, taken)):
        taken = list(texts_among(taken))
    log.texts.update(zip(map(id, taken), taken))  # noqa: B905  as many
    return taken


def _query_of(arguments: _Arguments, log: RequestLog) -> str | None:
    """The question that a search or a synthesizer is given."""
    text = text_in(next(iter(arguments.values()), None))
    if text is not None:
        log.texts[id(text)] = text
    return text


# Messages


def messages_in(given: Any, log: RequestLog) -> list[PayloadMessage]:
    """What a model was given: a text, or messages."""
    text = given if type(given) is str else plain_text(given)
    if text is not None:
        log.texts[id(text)] = text
        return [PayloadMessage("human", text)]
    taken = [message_of(message, log) for message in (items_of(given) or ()) if is_list(given)]
    return [one for one in taken if one.content or one.calls or one.call_id or one.unread or one.documents is not None]


def message_of(message: Any, log: RequestLog) -> PayloadMessage:
    """A message: its texts, and the files in it: documents where they are texts, else that there are some."""
    own = fields_of(message)
    texts: list[str] = []
    unread: list[str] = []
    documents: list[Document] = []
    blocks = own.get("blocks")
    for block in islice((items_of(blocks) or ()) if is_list(blocks) else (), MAX_BLOCKS):
        fields = fields_of(block)
        text = plain_text(fields.get("text"))
        if text:
            texts.append(log.count(text))
        elif text is None and plain_text(fields.get("block_type")) in _FILES:
            for part in map(fields_of, items_of(fields.get("content")) or (block,)):  # several in one to be cited
                held = next((value for name in _FILE_FIELDS if (value := part.get(name)) is not None), None)
                end = held[-_TAIL:].decode("ascii", "replace") if type(held) is bytes else word_of(held) or "file"
                inside = plain_text(part.get("text")) or _text_of_file(held, part.get("document_mimetype"))
                documents += [] if inside is None else [Document(log.count(inside), None, {})]
                unread += [end[-_TAIL:]] if inside is None else []
    calls, role = _calls_of(own, log), word_of(own.get("role"))
    call_id = plain_text(text_keyed(own.get("additional_kwargs")).get("tool_call_id"))
    log.parts += 4 + len(texts) + 4 * len(calls) + len(documents)
    content = texts[0] if len(texts) == 1 else "\n".join(texts)
    role = "human" if role is None else ROLES.get(role, role)
    return PayloadMessage(role, content, calls, call_id, unread=unread, documents=documents or None)


def _text_of_file(held: Any, kind: Any) -> str | None:
    """What a document in a block says, whose bytes are there in base64; None where it is elsewhere, too long, or not a text."""
    if type(held) is not bytes or len(held) > _MOST_OF_FILE or (plain_text(kind) or "").partition("/")[0] != "text":
        return None
    try:
        return base64.b64decode(held, validate=True).decode()
    except ValueError:
        return None


def _calls_of(own: Mapping[str, Any], log: RequestLog) -> list[Call]:
    """The tool calls in a message as the framework has them, or as its provider has; an agent's prompts repeat them."""
    blocks = [block for block in items_of(own.get("blocks")) or () if "tool_name" in fields_of(block)]
    given = None if blocks else text_keyed(own.get("additional_kwargs")).get("tool_calls")
    calls = []
    for call in blocks or (items_of(given) if is_list(given) else None) or ():
        known = log.kept.get(id(call))
        if known is None:
            own = text_keyed(call) or fields_of(call)
            function = text_keyed(own.get("function")) or fields_of(own.get("function"))
            arguments = (own.get("tool_kwargs"), function.get("arguments"), own.get("input"))
            taken = Call(
                _first_text({**function, **own}, ("tool_name", "name")),
                _first_text(own, ("tool_call_id", "tool_id", "id")),
                DATA.take(next((one for one in arguments if one is not None), None), log),
            )
            known = log.kept[id(call)] = (call, taken)
        calls.append(known[1])
    return calls


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these fields that is a text and not empty."""
    for name in names:
        if (value := fields.get(name)) is not None and (text := plain_text(value)):
            return text
    return None


# Starts


def _start_of_call(arguments: _Arguments, instance: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    if "start_event" not in arguments:
        given = next(iter(arguments.values()), None)
        return _asked(given, log) if arguments else None, facts.name
    event, own = arguments["start_event"], fields_of(instance)
    log.about |= {
        "is_run": True,
        "reread": True,
        "is_resumed": event is None,
        "is_agent": not facts.bases.isdisjoint(_AGENTS),
        "agent_name": plain_text(own.get("name")),
    }
    if event is None:
        return None, facts.name
    shown = {"state": own.get("initial_state") or None, **event_fields(event)}  # an agent's prompt shows its state
    taken = {name: _asked(value, log) for name, value in shown.items() if value is not None}
    if "chat_history" in taken:  # a conversation is the question
        taken["messages"] = taken.pop("chat_history")
    return taken, facts.name


def _asked(given: Any, log: RequestLog) -> Snapshot:
    """A question: a text, a `QueryBundle` or a message; or whatever else a workflow gets."""
    if type(given) is str:
        log.texts[id(given)] = given
        return given
    if kind_of(given) == "ChatMessage":
        return message_of(given, log)
    if is_list(given) and any(kind_of(each) == "ChatMessage" for each in items_of(given) or ()):
        return messages_in(given, log)
    text = text_in(given)
    return DATA.take(given, log, whole=False) if text is None else log.count(text)


def _start_of_synthesis(arguments: _Arguments, _: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    if not log.keys:
        log.about["asked"] = _query_of(arguments, log)
    return documents_of(argument(arguments, "nodes", 1), log, again=True), StepStart(SynthesisStep, facts.name)


def _start_of_chunks(arguments: _Arguments, _: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    if not log.keys:
        log.about["asked"] = _query_of(arguments, log)
    return texts_given(arguments, log), StepStart(SynthesisStep, facts.name)


def _start_of_search(arguments: _Arguments, instance: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    own = fields_of(instance)
    store, top_k = own.get("_vector_store"), own.get("_similarity_top_k", own.get("similarity_top_k"))
    metadata = {
        "top_k": top_k if top_k is None or type(top_k) is int else number_of(top_k),
        "data_source_id": None if store is None else _first_text(fields_of(store), _STORES),
    }
    return _query_of(arguments, log), StepStart(SearchStep, facts.name, {"metadata": metadata})


def _start_of_postprocessing(arguments: _Arguments, instance: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    own = fields_of(instance)
    top_k = own.get("top_n")
    query, model = text_in(argument(arguments, "query_bundle", 1)), _first_text(own, _MODELS)
    known = {
        "query": query,
        "model": model,
        "top_k": top_k if type(top_k) is int else None,
        "is_filter": not facts.is_reranker,
    }
    return documents_of(argument(arguments, "nodes", 0), log), StepStart(RerankStep, facts.name, known)


def _start_of_tool(arguments: _Arguments, instance: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    name = plain_text(fields_of(fields_of(instance).get("_metadata")).get("name"))
    named, given = arguments.get("kwargs"), arguments.get("input")
    if "args" in arguments:
        given = next(iter(items_of(arguments["args"]) or ()), None)
    if values := text_keyed(named):  # what else than plain values a tool is given does not come from a model
        given = values
    elif type(given) is not str and type(given) is not dict:
        given = None
    return DATA.take(given, log), StepStart(ToolStep, name or facts.name)


def _start_of_model(arguments: _Arguments, instance: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    given = None
    for name, value in arguments.items():
        if name == "kwargs":  # the framework's wrapper of `complete` names no argument
            given = text_keyed(value).get("prompt")
        elif name != "args" or value:
            given = value[0] if name == "args" else value
            break
    model = _first_text(fields_of(instance), _MODELS)  # the metadata property may ask the provider's server
    return messages_in(given, log), StepStart(ModelStep, facts.name, {"model": model, "provider": facts.provider})


def _start_of_asking(arguments: _Arguments, _: Any, facts: ClassFacts, log: RequestLog) -> Noted:
    values = text_keyed(arguments.get("prompt_args")).items()
    return {name: log.count(value) for name, value in values if type(value) is str}, facts.name


STARTS: Final[Mapping[Role, Callable[[_Arguments, Any, ClassFacts, RequestLog], Noted]]] = {
    "call": _start_of_call,
    "synthesis": _start_of_synthesis,
    "chunks": _start_of_chunks,
    "search": _start_of_search,
    "postprocessing": _start_of_postprocessing,
    "tool": _start_of_tool,
    "model": _start_of_model,
    "asking": _start_of_asking,
}


# Ends


def end_of_tool(result: Any, log: RequestLog) -> PayloadMessage:
    own = fields_of(result)
    content = text_in(result) if "blocks" in own else plain_text(own.get("content"))
    found = documents_of(nodes_among(own.get("raw_output")), log) or None
    return PayloadMessage("tool", log.count(content or ""), failed=own.get("is_error") is True, artifact=found)


def end_of_model(response: Any, log: RequestLog) -> Noted:
    """A model's reply, and what its provider said about it."""
    fields = fields_of(response)
    raw, beside, message = fields.get("raw"), fields.get("additional_kwargs"), fields.get("message")
    text = text_of(response) or ""
    log.texts[id(text)] = text
    reply = PayloadMessage("ai", text)
    if message is not None:
        own = fields_of(message)
        reply.calls = _calls_of(own, log)
        reply.searched = reports_search((own.get("additional_kwargs"),))
    if raw is None and type(beside) is dict and not beside:
        return reply, None  # nothing was said
    reply.searched = reply.searched or reports_search((raw, beside))
    return reply, notes_of((raw, beside))
