"""An OpenAI-compatible endpoint that answers each request after a fixed time, and as many as come at once.

    python -m judging.endpoint [--latency 0.2]

What a reply says depends on what was asked for: a form of ragspan's judge, a tool, or, where neither is named, an object
with a `reason` and a `verdict`. With a latency of `inf` it takes requests and never answers. `GET /counts` tells how many
requests came, and how many were waiting at most.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import re
import signal
import time
from typing import Any

from serving.processes import HOST, say

FORM = re.compile(r'\{"answer": \{"(\w+)"')
"""Names what a task of ragspan's judge asks for; the last one in a prompt is the task's."""
PARTS = re.compile(r"^Task: reply with the parts? ([\w, ]+?)(?: alone)?\.$", re.MULTILINE)
"""What a request asks for that asks several questions at once."""
NUMBERED = re.compile(r"exactly one verdict for each of these numbers: ([\d, ]+)\.")
_REASON = "The passages say so."
_CLAIMS = ("Beta settles card payments.", "It does so after midnight.")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_BACKLOG = 1024
_MEBIBYTE = 1 << 20


class Endpoint:
    """Answers after `latency` seconds. Speaks as much of HTTP as clients that keep their connections need."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._requests = self._waiting = self._most_waiting = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)  # the client, or this program
        with contextlib.suppress(*gone), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                came = time.perf_counter()
                length = head.partition("content-length:")[2].partition("\r\n")[0].strip()
                body = await reader.readexactly(int(length or 0))
                reply = (
                    await self._complete(body, came) if head.startswith("post") else json.dumps(self.tell()).encode()
                )
                writer.write(_HEAD % len(reply) + reply)
                await writer.drain()

    async def _complete(self, body: bytes, came: float) -> bytes:
        self._requests += 1
        self._waiting += 1
        self._most_waiting = max(self._most_waiting, self._waiting)
        try:
            reply = json.dumps(self.answer(json.loads(body))).encode()
            if self._latency == math.inf:
                await asyncio.Event().wait()
            await asyncio.sleep(self._latency - (time.perf_counter() - came))
            return reply
        finally:
            self._waiting -= 1

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The body of the reply to a request of the chat protocol."""
        return completion(request, *reply(request))

    def tell(self) -> object:
        """What it says of itself to whoever asks with GET."""
        return {"requests": self._requests, "most_waiting": self._most_waiting}


def completion(request: dict[str, Any], message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
    """A chat completion, with as many choices as are asked for."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [
            {"index": place, "finish_reason": finish_reason, "message": message}
            for place in range(request.get("n") or 1)
        ],
        "usage": {"prompt_tokens": 2000, "completion_tokens": 40, "total_tokens": 2040},
    }


def reply(request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The message, and why it ends."""
    if tools := request.get("tools"):
        arguments = json.dumps({"reason": _REASON, "pass": True, "score": 1.0})
        function = {"name": tools[0]["function"]["name"], "arguments": arguments}
        call = {"id": "call_1", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    task = request["messages"][-1]["content"]
    forms = forms_in(task) if isinstance(task, str) else []
    answer: object = (
        {"answer": {form: finding(form, task) for form in forms}} if forms else {"reason": _REASON, "verdict": 1}
    )
    return {"role": "assistant", "content": json.dumps(answer)}, "stop"


def forms_in(task: str) -> list[str]:
    """What a task of ragspan's judge asks for: one form, or several parts."""
    parts = PARTS.findall(task)
    return parts[-1].split(", ") if parts else FORM.findall(task)[-1:]


def finding(form: str, task: str) -> object:
    """What stands under the key of one of the forms of `ragspan.judges.llm.parts`."""
    numbers = [int(number) for numbers in NUMBERED.findall(task)[-1:] for number in numbers.split(",")]
    findings: dict[str, object] = {
        "grounding": {"reasoning": _REASON, "verdict": "grounded"},
        "completeness": {"reasoning": _REASON, "value": 1.0},
        "judged_claims": {
            "claims": [{"claim": claim, "reasoning": _REASON, "verdict": "supported"} for claim in _CLAIMS],
            "more": False,
        },
        "claim_verdicts": [{"number": number, "reasoning": _REASON, "verdict": "supported"} for number in numbers],
        "context_verdicts": [{"number": number, "reasoning": _REASON, "verdict": "useful"} for number in numbers],
    }
    return findings[form]


async def serve(endpoint: Endpoint) -> None:
    server = await asyncio.start_server(endpoint.converse, HOST, backlog=_BACKLOG, limit=_MEBIBYTE)
    say(port=server.sockets[0].getsockname()[1])
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A chat endpoint of fixed latency.")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds; inf never answers")
    asyncio.run(serve(Endpoint(parser.parse_args().latency)))


if __name__ == "__main__":
    main()
