from __future__ import annotations

import asyncio
import importlib.util

import pytest
from opentelemetry import context
from opentelemetry.instrumentation import utils

from ragspan.telemetry import is_suppressed, suppressed


def test_instrumentations_see_that_they_should_keep_quiet():
    with suppressed():
        assert is_suppressed()
        assert not utils.is_instrumentation_enabled()
        assert not utils.is_http_instrumentation_enabled()
        assert context.get_value(context._SUPPRESS_HTTP_INSTRUMENTATION_KEY)

    assert not is_suppressed()
    assert utils.is_http_instrumentation_enabled()


def test_suppression_ends_with_an_exception():
    with pytest.raises(ValueError, match="inside"), suppressed():
        raise ValueError("inside")

    assert not is_suppressed()


def test_what_others_keep_in_the_context_stays_there():
    token = context.attach(context.set_value("theirs", 1))
    try:
        with suppressed():
            assert context.get_value("theirs") == 1
    finally:
        context.detach(token)


def test_suppression_by_opentelemetrys_own_means_counts_too():
    with utils.suppress_instrumentation():
        assert is_suppressed()


async def test_a_task_started_inside_is_suppressed_and_its_neighbour_is_not():
    inside_is_on = asyncio.Event()
    neighbour_has_looked = asyncio.Event()

    async def judge():
        with suppressed():
            inside_is_on.set()
            await neighbour_has_looked.wait()
            return await asyncio.create_task(asyncio.to_thread(is_suppressed))

    async def neighbour():
        await inside_is_on.wait()
        seen = is_suppressed()
        neighbour_has_looked.set()
        return seen

    assert await asyncio.gather(judge(), neighbour()) == [True, False]


async def test_a_cancelled_task_leaves_nothing_behind(caplog):
    entered = asyncio.Event()

    async def judge():
        with suppressed():
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(judge())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not is_suppressed()
    assert caplog.records == []  # OpenTelemetry logs a context that could not be detached


def test_a_release_of_opentelemetry_without_the_private_names_can_be_worked_with(monkeypatch):
    for name in ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY"):
        monkeypatch.delattr(context, name)
    spec = importlib.util.find_spec("ragspan.telemetry.otel_context")
    afresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(afresh)

    with afresh.suppressed():
        assert (afresh.is_suppressed(), context.get_value("suppress_instrumentation")) == (True, True)
    assert not afresh.is_suppressed()
