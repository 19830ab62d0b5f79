"""How many traces a second `ragspan worker --otlp` takes, reads and scores on this machine.

    python benchmarks/receiving.py [--rate 2000] [--seconds 20] [--quick] [--json FILE]

Traces of ten spans, as OpenInference writes them for a RAG answer with four passages of half a kilobyte, come over HTTP from
another process, 50 in a request of protobuf without compression; so the sender spends little of the processors that both share.
A trace counts as lost unless it was taken and read. In each row the receiver is a process of its own:

- `read`: every trace is taken and read, and `RAGSPAN_SAMPLE_RATE=0` spares the judge;
- `no answers`: ten spans of web requests, which nobody has to read;
- `one a request`: 1 trace in a request on 8 connections, as programs send that export each trace at once;
- `scored`: as `read`, and each answer is scored; what the engine has no time for it drops and counts;
- `a tenth`: `RAGSPAN_SAMPLE_RATE=0.1`: nine of ten traces need not be read, and the others are scored;
- `too little memory`: as `read` with 16 MiB for open traces. The sender waits for room, so it sends less; what is refused all the same
  it does not send again here.

"Processors" are seconds of processor time for each second of sending, until all is read.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich.console import Console
from rich.table import Table
from serving.passages import passages, question
from serving.processes import HOST, PATIENCE, running
from serving.processor_time import descendants, of_process

SPANS = 10
QUIET = 1.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    arguments: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = (("RAGSPAN_SAMPLE_RATE", "0"),)
    traces_in_a_request: int = 50
    connections: int = 1
    is_answer: bool = True


CASES = (
    Case(name="read"),
    Case(name="no answers", is_answer=False),
    Case(name="one a request", traces_in_a_request=1, connections=8),
    Case(name="scored", settings=()),
    Case(name="a tenth", settings=(("RAGSPAN_SAMPLE_RATE", "0.1"),)),
    Case(name="too little memory", arguments=("--memory", "16")),
)
QUICK = (CASES[0], replace(CASES[5], arguments=("--memory", "4")))


class Requests:
    """Bodies of requests that differ in the ids of their traces and spans: one is laid out, and the ids are put into its bytes."""

    def __init__(self, traces: int, *, is_answer: bool) -> None:
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for number in range(traces):
            add_trace(scope.spans, number, is_answer=is_answer)
        self._body = bytearray(request.SerializeToString())
        # A trace's id has its number in the first four bytes, a fixed end, and so a place that can be found again.
        self._places = [
            (found.start(), found[1]) for found in re.finditer(rb"(?s)(.{4})trace number", bytes(self._body))
        ]
        self.size = len(self._body)
        self.traces = traces

    def next(self) -> bytes:
        fresh = os.urandom(8).hex()[:12].encode()
        for start, number in self._places:
            self._body[start : start + 16] = number + fresh
        return bytes(self._body)


def add_trace(spans: Any, number: int, *, is_answer: bool) -> None:
    trace_id = number.to_bytes(4, "big") + b"trace number"
    texts = [text[:500] for text in passages(4, seed=number)]
    asked = question(number)
    for place, attributes in enumerate(answer(asked, texts) if is_answer else [web_request()] * SPANS):
        span = spans.add(
            trace_id=trace_id,
            span_id=(number * SPANS + place + 1).to_bytes(8, "big"),
            parent_span_id=(number * SPANS + 1).to_bytes(8, "big") if place else b"",
            name="RunnableSequence",
            start_time_unix_nano=1_700_000_000_000_000_000 + place,
            end_time_unix_nano=1_700_000_000_010_000_000 + place,
        )
        for name, value in attributes.items():
            span.attributes.add(key=name).value.string_value = value


def answer(asked: str, texts: list[str]) -> Iterator[dict[str, str]]:
    """The attributes of the spans of one answer, its root first."""
    said = texts[0].partition(".")[0] + "."
    yield {"openinference.span.kind": "CHAIN", "input.value": asked, "output.value": said}
    documents = {f"retrieval.documents.{place}.document.content": text for place, text in enumerate(texts)}
    yield {"openinference.span.kind": "RETRIEVER", "input.value": asked, **documents}
    prompt = "\n\n".join(["Answer from these passages:", *texts, asked])
    yield {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o-mini",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
        "output.value": said,
    }
    yield {"openinference.span.kind": "CHAIN", "input.value": asked, "output.value": prompt}
    yield {"openinference.span.kind": "EMBEDDING", "embedding.model_name": "text-embedding-3-small"}
    yield from [web_request()] * 5


def web_request() -> dict[str, str]:
    return {
        "http.request.method": "POST",
        "url.full": "https://search.example/v1/query",
        "http.response.status_code": "200",
        "server.address": "search.example",
        "user_agent.original": "python-httpx/0.28.1",
    }


@contextmanager
def receiver(case: Case, sink: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command in a process of its own, and its port."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RAGSPAN_"))}
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{sink}", **dict(case.settings)}
    process = subprocess.Popen(
        [sys.executable, "-m", "ragspan.cli", "worker", "--otlp", f"{HOST}:0", "--quiet", str(QUIET), *case.arguments],
        env={**inherited, **settings, "NO_PROXY": HOST},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r":(\d+)/v1/traces", said)
        if found is None:
            raise RuntimeError(said)
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()


def measured(case: Case, rate: int, seconds: float) -> dict[str, Any]:
    senders = [Requests(case.traces_in_a_request, is_answer=case.is_answer) for _ in range(case.connections)]
    with running("serving.sink") as sink, receiver(case, sink.port) as (process, port):
        before, began = spent(process.pid), time.perf_counter()
        with ThreadPoolExecutor(case.connections) as threads:
            counts = list(threads.map(lambda one: send(one, port, rate / case.connections, seconds), senders))
        sent, refused = map(sum, zip(*counts, strict=True))
        took = time.perf_counter() - began
        figures = settled(port)
        used = {name: now - before[name] for name, now in spent(process.pid).items()}
        scored = sink.get("/counts")["by_first_word"].get("evaluation", 0)
    done = (
        figures.get("records" if case.is_answer else "traces.ended", 0) + figures.get("spans.not_sampled", 0) // SPANS
    )
    return {
        "traces": case.name,
        "sent a second": sent / took,
        "MB a second": sent / senders[0].traces * senders[0].size / took / 1e6,
        "sent": sent,
        "refused": refused,
        "lost": sent - refused - done,
        "scores": scored,
        "processors": used["receiver"] / took,
        "of its helper": used["helper"] / took,
    }


def send(requests: Requests, port: int, rate: float, seconds: float) -> tuple[int, int]:
    """Send at this rate, or as fast as it is taken; traces sent, and traces refused."""
    sent = refused = 0
    with closing(http.client.HTTPConnection(HOST, port, timeout=PATIENCE)) as connection:
        began = time.perf_counter()
        while (now := time.perf_counter() - began) < seconds:
            if sent > now * rate:
                time.sleep(sent / rate - now)
            connection.request("POST", "/v1/traces", requests.next(), {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
            sent += requests.traces
            refused += requests.traces * (response.status != http.client.OK)
    return sent, refused


def settled(port: int) -> Mapping[str, int]:
    """What the receiver says once it holds no trace any more."""
    ends_at = time.monotonic() + PATIENCE
    while True:
        with closing(http.client.HTTPConnection(HOST, port, timeout=PATIENCE)) as connection:
            connection.request("GET", "/healthz")
            figures: dict[str, int] = json.loads(connection.getresponse().read())
        if figures["bytes"] == 0 or time.monotonic() > ends_at:
            return figures
        time.sleep(0.2)


def spent(pid: int) -> dict[str, float]:
    return {"receiver": of_process(pid), "helper": sum(map(of_process, descendants(pid)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rate", type=int, default=2000, help="traces a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="two rows of two seconds")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    cases, seconds = (QUICK, 2.0) if arguments.quick else (CASES, arguments.seconds)
    rows = [measured(case, arguments.rate, seconds) for case in cases]

    table = Table(title=f"Traces of {SPANS} spans, {arguments.rate} a second asked for")
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=120).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
