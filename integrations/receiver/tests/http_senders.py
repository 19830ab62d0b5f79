"""Senders of OTLP over HTTP, and waiting for what becomes of what they send."""

from __future__ import annotations

import asyncio

import httpx

PROTOBUF = {"content-type": "application/x-protobuf"}


async def post(served, content, headers=PROTOBUF, **others):
    async with httpx.AsyncClient() as client:
        return await client.post(served.url, content=content, headers=headers, **others)


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), 60)


async def connected(served):
    host, _, port = served.address.partition(":")
    return await asyncio.open_connection(host, int(port))
