"""What `ragspan doctor --receiver` says of a receiver that runs."""

from __future__ import annotations

import asyncio
import json
import os

import httpx
import pytest
from servers.http import LocalHttp
from typer.testing import CliRunner

from ragspan.cli import app
from ragspan.doctor.receiver import ask_receiver
from ragspan.exceptions import ConfigurationError
from ragspan_receiver.traces import BufferLimits

QUICK = BufferLimits(quiet=0.01, deadline=0.01)


async def found(address):
    """The findings as state and words; asked in a thread, as the receiver answers in this loop."""
    findings = await asyncio.to_thread(lambda: list(ask_receiver(f"http://{address}", 20.0)))
    return [(each.state, each.found) for each in findings], [each.advice for each in findings]


async def sent(served, request):
    async with httpx.AsyncClient() as client:
        reply = await client.post(
            served.url, content=request.SerializeToString(), headers={"content-type": "application/x-protobuf"}
        )
    assert reply.status_code == 200


async def ended(served, traces):
    async def wait():
        while served.receiver.counts["traces.ended"] < traces or len(served.receiver.traces):
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 60)


async def test_spans_of_a_convention_that_could_not_be_read_are_named(serving, span, answer, request_with):
    dream = {"gen_ai.operation.name": "dream"}
    async with serving(QUICK) as served:
        await sent(
            served, request_with(*(span(os.urandom(16), attributes=dream) for _ in range(3)), scope="acme doctor")
        )
        await sent(served, request_with(answer(os.urandom(16))))
        await ended(served, 4)
        await served.record()
        (read, named), advice = await found(served.address)

    assert read == ("ok", f"http://{served.address} has found 1 answer in 4 traces")
    assert named == ("warning", "spans of 'acme doctor' are of no convention that is read: dream (3 so far)")
    assert advice[1].endswith("/docs/receiver.md")


async def test_calls_of_models_without_texts_are_named_too(serving, span, request_with):
    silent = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    async with serving(QUICK) as served:
        await sent(served, request_with(span(os.urandom(16), attributes=silent), scope="acme doctor"))
        await ended(served, 1)
        (_, named), _ = await found(f"{served.address}/v1/traces")

    assert named[1].startswith("calls of models by 'acme doctor' have no texts")


async def test_a_sender_of_ever_new_names_does_not_fill_the_page(serving, span, request_with):
    names = [span(os.urandom(16), attributes={"gen_ai.operation.name": f"dream {n}"}) for n in range(200)]
    async with serving(QUICK) as served:
        await sent(served, request_with(*names, scope="acme doctor"))
        await ended(served, 200)
        findings, _ = await found(served.address)

    assert 1 < len(findings) <= 60


async def test_a_receiver_that_is_full_is_said_to_be(serving, answer, request_with):
    async with serving(BufferLimits(max_traces=1)) as served:
        await sent(served, request_with(answer(os.urandom(16))))
        (full, _), advice = await found(served.address)

    assert full == ("warning", "it takes no spans at the moment")
    assert "come again" in advice[0]


@pytest.mark.parametrize("page", [b"<html>", b"[]", b"{}", b"[" * 5000, json.dumps({"ready": True}).encode()])
def test_another_servers_page_is_no_receivers(page):
    server = LocalHttp(lambda _: (200, {}, page))
    try:
        (one,) = ask_receiver(server.url, 20.0)
    finally:
        server.close()

    assert (one.state, one.found) == ("failed", f"{server.url} is not a receiver: its page is another one (HTTP 200)")
    assert "ragspan worker --otlp" in one.advice


def test_nobody_there_and_no_address_are_told_apart(unused_tcp_port):
    (one,) = ask_receiver(f"http://127.0.0.1:{unused_tcp_port}", 5.0)

    assert "cannot be reached" in one.found
    assert one.code == "receiver_unreachable"
    with pytest.raises(ConfigurationError, match="--receiver should be an address"):
        list(ask_receiver("127.0.0.1:4318", 5.0))


@pytest.mark.slow
def test_the_command_tells_it_last(monkeypatch, tmp_path):
    page = {"ready": True, "records": 2, "not_read": {"spans of 'acme' are of no convention that is read: dream": 7}}
    server = LocalHttp(lambda _: (200, {}, json.dumps(page).encode()))
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    try:
        result = CliRunner().invoke(
            app, ["doctor", "--receiver", server.url, "--json", str(tmp_path / "found.json")], env={"COLUMNS": "200"}
        )
    finally:
        server.close()
    findings = json.loads((tmp_path / "found.json").read_text())["findings"]

    assert "dream (7 so far)" in result.output
    assert [each["check"] for each in findings][-2:] == ["receiver", "receiver"]
