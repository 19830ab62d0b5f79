"""Notes what a step was given when it began and what it gave back when it ended: references and short copies only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ragspan_llama_index.answering import GENERATOR, kind_of, text_of
from ragspan_llama_index.asking import asked_by_event, asked_with, calls_in, prompt_in, text_in
from ragspan_llama_index.nodes import are_nodes, seen
from ragspan_llama_index.roles import Role
from ragspan_llama_index.steps import Step

_Arguments = Mapping[str, Any]
_PLAIN = frozenset({str, int, float, bool, list, dict, type(None)})


def note_start(step: Step, role: Role, arguments: _Arguments, instance: Any) -> None:
    start = _STARTS.get(role)
    if start is not None:
        start(step, arguments, instance)


def note_end(step: Step, result: Any) -> None:
    end = _ENDS.get(step.role)
    if end is not None:
        end(step, result)


def note_texts(step: Step, arguments: _Arguments) -> None:
    """A synthesizer wrote the nodes down for the model; what it makes of these texts further on is packed or shortened."""
    if step.texts is None:
        texts = _argument(arguments, "text_chunks", 1)
        step.texts = [text for text in texts if isinstance(text, str)] if isinstance(texts, (list, tuple)) else ()


def _start_call(step: Step, arguments: _Arguments, _: Any) -> None:
    if "start_event" in arguments:
        step.is_run = True
        step.asked = asked_by_event(arguments["start_event"])
    else:
        step.asked = asked_with(_argument(arguments, None, 0))


def _start_synthesis(step: Step, arguments: _Arguments, instance: Any) -> None:
    step.asked = asked_with(_argument(arguments, "query", 0))
    step.given = seen(_argument(arguments, "nodes", 1))
    step.kind = type(instance)


def _start_chunks(step: Step, arguments: _Arguments, _: Any) -> None:
    step.asked = asked_with(_argument(arguments, "query_str", 0))
    note_texts(step, arguments)


def _start_search(step: Step, arguments: _Arguments, instance: Any) -> None:
    step.find_span()
    step.asked = asked_with(_argument(arguments, None, 0))
    about = getattr(instance, "__dict__", {})
    step.top_k = about.get("_similarity_top_k", about.get("similarity_top_k"))
    store = getattr(about.get("_vector_store"), "__dict__", None)
    if store is not None:
        step.source = store.get("collection_name") or store.get("index_name") or store.get("table_name")


def _start_postprocessing(step: Step, arguments: _Arguments, instance: Any) -> None:
    step.given = seen(_argument(arguments, "nodes", 0))
    step.kind = type(instance)
    step.query = text_in(_argument(arguments, "query_bundle", 1))
    about = getattr(instance, "__dict__", {})
    step.model = about.get("model") or about.get("model_name")
    step.top_k = about.get("top_n")


def _start_tool(step: Step, arguments: _Arguments, instance: Any) -> None:
    step.tool_name = getattr(getattr(instance, "metadata", None), "name", None)
    given = next(iter(arguments.get("args", ())), None) if "args" in arguments else arguments.get("input")
    named = arguments.get("kwargs")
    if named:  # what else than plain values a tool is given does not come from a model
        step.arguments = {name: value for name, value in named.items() if type(value) in _PLAIN}
    elif type(given) in {str, dict}:
        step.arguments = given


def _start_model(step: Step, arguments: _Arguments, instance: Any) -> None:
    _start_asking(step, arguments, instance)
    given = _argument(arguments, None, 0)
    if "args" in arguments or "kwargs" in arguments:  # the framework's wrapper of `complete` names no argument
        given = next(iter(arguments.get("args", ())), None) or arguments.get("kwargs", {}).get("prompt")
    step.prompt, step.beside = prompt_in(given)


def _start_asking(step: Step, _: _Arguments, instance: Any) -> None:
    about = getattr(instance, "__dict__", {})  # the metadata property may ask the provider's server
    model = about.get("model") or about.get("model_name")
    step.model = model if isinstance(model, str) else None
    step.module = type(instance).__module__


def _end_synthesis(step: Step, _: Any) -> None:
    if step.texts is None:  # it wrote them down in a way of its own
        for node in step.given:
            node.freeze()


def _end_search(step: Step, result: Any) -> None:
    step.find_span()
    step.found = seen(result)


def _end_postprocessing(step: Step, result: Any) -> None:
    step.found = seen(result)


def _end_tool(step: Step, result: Any) -> None:
    content = getattr(result, "content", None)
    step.answer = content if isinstance(content, str) else None
    found = getattr(result, "raw_output", None)
    if are_nodes(found):
        step.found = seen(found)


def _end_model(step: Step, result: Any) -> None:
    if kind_of(result) == GENERATOR:
        step.streams = True
        step.tokens = []
        return
    if not step.inside_synthesis:
        step.answer = text_of(result)
    _note_reply(step, result)


def note_end_of_stream(step: Step, last: Any) -> None:
    """A model's stream has been read: its last chunk tells what a reply in one piece would."""
    step.read_ns = time.time_ns()
    _note_reply(step, last)


def _note_reply(step: Step, response: Any) -> None:
    if step.inside_synthesis:
        step.said = text_of(response)
    # Of the framework's classes: to look for a field that is not there takes them long.
    step.asked_for = calls_in(getattr(response, "__dict__", {}).get("message"))
    step.reply = (getattr(response, "raw", None), getattr(response, "additional_kwargs", None))


def _argument(arguments: _Arguments, name: str | None, place: int) -> Any:
    """An argument by its name, or by its place where a program's own method names it otherwise."""
    if name is not None and name in arguments:
        return arguments[name]
    return next(islice(arguments.values(), place, None), None)


_STARTS: Mapping[Role, Callable[[Step, _Arguments, Any], None]] = {
    Role.CALL: _start_call,
    Role.SYNTHESIS: _start_synthesis,
    Role.CHUNKS: _start_chunks,
    Role.SEARCH: _start_search,
    Role.POSTPROCESSING: _start_postprocessing,
    Role.TOOL: _start_tool,
    Role.MODEL: _start_model,
    Role.ASKING: _start_asking,
}
_ENDS: Mapping[Role | None, Callable[[Step, Any], None]] = {
    Role.SYNTHESIS: _end_synthesis,
    Role.SEARCH: _end_search,
    Role.POSTPROCESSING: _end_postprocessing,
    Role.TOOL: _end_tool,
    Role.MODEL: _end_model,
}
