"""Handlers of other people's, each with what it hears as plain values that two runs of a program can be compared by."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.base import AsyncBaseTracer

EVENTS = [name for name in dir(BaseCallbackHandler) if name.startswith("on_")]
_OF_ONE_CALL = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|0x[0-9a-f]+|call-\d+|\d{4}-\d\d-\d\dT[\d:.+]+"
)


def plain(value: Any) -> str:
    """A value as text, without what differs from call to call: ids, addresses, times, the order of keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{plain(key)}: {plain(each)}" for key, each in value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(plain, value)) + "]"
    return _OF_ONE_CALL.sub("ID", repr(value))


class Listener:
    """What a program is called with, and what was heard of it."""

    def __init__(self, *handlers: BaseCallbackHandler) -> None:
        self.handlers = list(handlers)

    def heard(self) -> list[str]:
        """The events, each as text."""
        return [line for handler in self.handlers for line in handler.told()]


# Handlers that note every event


class _Notes:
    """Events with the names of the runs around them in place of ids."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.runs: dict[Any, str] = {}

    def add(self, event: str, values: Any, about: dict[str, Any]) -> None:
        run, parent = about.pop("run_id", None), about.pop("parent_run_id", None)
        about["tags"] = sorted(about.get("tags") or [])
        if event.endswith("_start"):
            own = about.get("name") or (values[0] or {}).get("name") or event
            self.runs[run] = f"{self.runs.get(parent, '')}/{own}"
        self.lines.append(f"{self.runs.get(run, 'a run that is not known')}: {event} {plain(values)} {plain(about)}")


class _Listening:
    def __init__(self, *, inline: bool = False) -> None:
        self.run_inline = inline
        self.notes = _Notes()

    def told(self):
        return self.notes.lines


class Noting(_Listening, BaseCallbackHandler):
    pass


class NotingAsynchronously(_Listening, AsyncCallbackHandler):
    pass


def _noting(event):
    def note(self, *values, **about):
        if event == "on_llm_new_token" and not values:
            values = (about.pop("token"),)  # by keyword in sync code
        self.notes.add(event, values, about)

    return note


def _noting_asynchronously(event):
    note = _noting(event)

    async def note_after_a_while(self, *values, **about):
        await asyncio.sleep(0)
        note(self, *values, **about)

    return note_after_a_while


for _event in EVENTS:
    setattr(Noting, _event, _noting(_event))
    setattr(NotingAsynchronously, _event, _noting_asynchronously(_event))


class ForPlainModels(BaseCallbackHandler):
    """Knows no chat models: LangChain tells it those as plain ones."""

    def __init__(self):
        self.lines = []

    def on_llm_start(self, serialized, prompts, **_):
        self.lines.append(f"start {plain(prompts)}")

    def on_llm_end(self, response, **_):
        self.lines.append(f"end {plain(response.generations)}")

    def told(self):
        return self.lines


class Failing(Noting):
    """Fails on every start, which LangChain logs; it hears the rest."""

    def on_chain_start(self, *_, **__):
        raise ZeroDivisionError

    on_llm_start = on_chat_model_start = on_retriever_start = on_tool_start = on_chain_start


# LangChain's own


def error_of(run: Any) -> str | None:
    """Without the traceback after it, which depends on what a thread waited for."""
    return None if run.error is None else run.error.splitlines()[0]


def _told_by_runs(runs: Iterable[Any]) -> list[str]:
    lines = []
    for run in runs:
        events = [event["name"] for event in run.events]
        lines.append(
            f"{run.run_type} {run.name}: {plain(run.inputs)} {plain(run.outputs)} {plain(error_of(run))} "
            f"{events} {sorted(run.tags or [])}"
        )
        lines += [f"  {line}" for line in _told_by_runs(run.child_runs)]
    return lines


class AsynchronousTracer(AsyncBaseTracer):
    def __init__(self):
        super().__init__()
        self.kept = []

    async def _persist_run(self, run):
        self.kept.append(run)

    def told(self):
        return _told_by_runs(self.kept)


class LangSmithTracer(LangChainTracer):
    """LangSmith's tracer, which is inline; it keeps what it would send."""

    def __init__(self, **options):
        super().__init__(**{"client": object(), **options})
        self.lines = []

    def _persist_run_single(self, run):
        self.lines.append(f"start {run.run_type} {run.name} {plain(run.inputs)} {sorted(run.tags or [])}")

    def _update_run_single(self, run):
        self.lines.append(f"end {run.run_type} {run.name} {plain(run.outputs)} {plain(error_of(run))}")

    def told(self):
        return self.lines


LISTENERS = {
    "sync": lambda: Listener(Noting()),
    "async": lambda: Listener(NotingAsynchronously()),
    "inline and async": lambda: Listener(Noting(inline=True), NotingAsynchronously()),
    "for plain models": lambda: Listener(ForPlainModels()),
    "failing": lambda: Listener(Failing(), Noting()),
    "async tracer": lambda: Listener(AsynchronousTracer()),
    "LangSmith": lambda: Listener(LangSmithTracer()),
}
"""Of each kind, new ones."""
