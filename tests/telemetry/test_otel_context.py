"""Anchors and suppression in OpenTelemetry's contexts."""

from __future__ import annotations

import asyncio

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
