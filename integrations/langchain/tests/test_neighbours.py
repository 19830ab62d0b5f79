"""Other people's handlers hear the same with and without ragspan beside them, their callers get the same, and so do we."""

from __future__ import annotations

import functools
import logging

import pytest
from captures import CollectingSink
from jsonpatch import JsonPointerException
from listeners import LISTENERS, Listener, plain
from neighbour_programs import IN_ORDER, PROGRAMS

from ragspan_langchain import RagspanCallbackHandler

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{name}:DeprecationWarning") for name in ("astream_events", "astream_log")
]


@pytest.fixture(autouse=True)
def failing_listeners_may_be_logged(caplog):
    caplog.set_level(logging.CRITICAL, logger="langchain_core.callbacks.manager")


def run(program, listener: Listener, *, ours=None, first=False):
    """What the caller gets and what is heard; order counts where the program has one."""
    beside = [] if ours is None else [ours]
    handlers = [*beside, *listener.handlers] if first else [*listener.handlers, *beside]
    try:
        returned = PROGRAMS[program]({"callbacks": handlers})
    except JsonPointerException as error:  # LangChain's own, for plain models beside an inline handler
        returned = repr(error)
    heard = listener.heard()
    pieces = [plain(piece) for piece in returned] if isinstance(returned, list) else [plain(returned)]
    return (pieces, heard) if program in IN_ORDER else (sorted(pieces), sorted(heard))


def record_of(sink):
    """What we saw of the program's answers; in any order."""
    assert sink.errors == []
    records = [record for capture in sink.take() if (record := capture.to_record())]
    assert all(step.reply or each.status != "complete" for each in records for step in each.generations)
    return sorted(
        repr((each.question, each.response, each.contexts and [c.text for c in each.contexts], len(each.generations)))
        for each in records
    )


@functools.cache
def record_alone(program):
    """What we see of it where nobody else listens."""
    sink = CollectingSink()
    PROGRAMS[program]({"callbacks": [RagspanCallbackHandler(sink=sink)]})
    return record_of(sink)


def is_cut_short(outcome):
    return any("JsonPointerException" in piece for piece in outcome[0])


KINDS = [
    kind if kind in {"inline and async", "LangSmith"} else pytest.param(kind, marks=pytest.mark.slow)
    for kind in LISTENERS
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_with_ragspan_and_without_all_is_the_same(program, kind):
    before, after = CollectingSink(), CollectingSink()
    without = run(program, LISTENERS[kind]())

    assert run(program, LISTENERS[kind](), ours=RagspanCallbackHandler(sink=after)) == without
    assert run(program, LISTENERS[kind](), ours=RagspanCallbackHandler(sink=before), first=True) == without
    if not is_cut_short(without):
        assert record_of(before) == record_of(after) == record_alone(program)
