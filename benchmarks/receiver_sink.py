"""Whether a receiver with a sink loses an answer: all that were sent are in the broker's stream, or were refused and counted.

    python benchmarks/receiver_sink.py --burst 10000 --runs 5
    python benchmarks/receiver_sink.py --rate 1600 --seconds 60 --runs 5
    python benchmarks/receiver_sink.py --burst 10000 --stop

Needs `nats-server`. `--stop` sends SIGTERM in the middle; `--grpc` sends by gRPC. What is refused is not sent again. Exit status 1: an
answer is missing, or was dropped after it had been taken.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "integrations" / "nats" / "tests"), str(ROOT / "tests" / "shared")]

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import set_span_in_context  # noqa: E402
from servers.broker import Broker  # type: ignore[import-not-found]  # noqa: E402

_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_TEXT = "Ada Lovelace wrote the first program in 1843."


def request_with(number: int) -> ExportTraceServiceRequest:
    """So many answers, each with a search and a model below a chain."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    search = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "first program",
        "retrieval.documents.0.document.content": _TEXT,
    }
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": f"{_TEXT}\nWho wrote it?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Ada Lovelace wrote it.",
    }
    chain = {
        "openinference.span.kind": "CHAIN",
        "input.value": "Who wrote it?",
        "output.value": "Ada Lovelace wrote it.",
    }
    for _ in range(number):
        root = tracer.start_span("ask", attributes=chain)
        for name, attributes in (("search", search), ("model", model)):
            tracer.start_span(name, set_span_in_context(root), attributes=attributes).end()
        root.end()
    request: ExportTraceServiceRequest = encode_spans(exporter.get_finished_spans())
    return request


def with_new_ids(request: ExportTraceServiceRequest) -> bytes:
    """The same answers as traces of their own."""
    ids: dict[bytes, bytes] = {}
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.trace_id = ids.setdefault(span.trace_id, os.urandom(16))
    return bytes(request.SerializeToString())


class Sender:
    """Sends a body, and says what became of it: `taken`, `refused`, or `unanswered`, where nobody listens any more."""

    def __init__(self, log: str, *, by_grpc: bool) -> None:
        http, grpc_at = re.search(r"OTLP at (\S+) and (\S+);", log).groups()  # type: ignore[union-attr]
        self._http = None if by_grpc else httpx.Client(timeout=60, trust_env=False)
        self._url = http
        if by_grpc:
            import grpc

            self._export = grpc.insecure_channel(grpc_at).unary_unary(_METHOD)

    def send(self, body: bytes) -> str:
        if self._http is None:
            import grpc

            try:
                self._export(body, timeout=60)
            except grpc.RpcError as error:
                return "refused" if "wait" in error.details() or "stops" in error.details() else "unanswered"
            return "taken"
        try:
            status = self._http.post(
                self._url, content=body, headers={"content-type": "application/x-protobuf"}
            ).status_code
        except httpx.TransportError:
            return "unanswered"
        return {200: "taken", 503: "refused"}.get(status, f"status {status}")


def run(options: argparse.Namespace, broker: Broker, folder: Path) -> bool:
    log = folder / "receiver.log"
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("OTEL_", "RAGSPAN_", "NATS_"))}
    with log.open("w") as file:
        receiver = subprocess.Popen(
            [
                Path(sys.executable).with_name("ragspan"),
                "worker",
                "--otlp",
                "127.0.0.1:0",
                "--otlp-grpc",
                "127.0.0.1:0",
            ],
            env={**clean, "RAGSPAN_SINK": broker.url, "RAGSPAN_JUDGE": "overlap"},
            stdout=file,
            stderr=file,
        )
    while "answers are for the fleet" not in log.read_text():
        time.sleep(0.05)
    sender = Sender(log.read_text(), by_grpc=options.grpc)
    size = 1000 if options.burst else options.rate // 4
    number = options.burst // 1000 if options.burst else options.seconds * 4
    template = request_with(size)
    became: Counter[str] = Counter()
    began = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        sending = []
        for place in range(number):
            if not options.burst:
                time.sleep(max(0.0, began + place / 4 - time.monotonic()))
            sending.append(threads.submit(sender.send, with_new_ids(template)))
            if options.stop and not options.burst and place == number // 2:
                receiver.terminate()
        if options.stop and options.burst:  # all are under way by now, and some have been taken
            for one in itertools.islice(as_completed(sending), max(1, number // 4)):
                one.result()
            receiver.terminate()
        for one in sending:
            became[one.result()] += size
    if not options.stop:
        time.sleep(4)  # they are open for two seconds
        receiver.terminate()
    stopping = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = receiver.wait(60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = broker.stream("ragspan")
    stored = found.messages if found else 0
    if found:
        broker.purge("ragspan")
    last = log.read_text().strip().splitlines()[-1]
    is_whole = status == 0 and stored == became["taken"] and sum(became.values()) == size * number
    print(
        f"{'ok   ' if is_whole else 'WRONG'} sent {size * number} in {stopping - began:.1f} s: {dict(became)}; in the stream {stored}; "
        f"ended in {time.monotonic() - stopping:.1f} s; processor time {used:.1f} s, load {os.getloadavg()[0]:.0f}; {last}",
        flush=True,
    )
    return is_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--burst", type=int, default=0, help="answers, in requests of a thousand, as fast as they go")
    parser.add_argument("--rate", type=int, default=1600, help="answers a second, in four requests")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--stop", action="store_true", help="SIGTERM in the middle")
    parser.add_argument("--grpc", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        broker = Broker(Path(name))
        broker.start()
        try:
            are_whole = [run(options, broker, Path(name)) for _ in range(options.runs)]
        finally:
            broker.kill()
    sys.exit(not all(are_whole))


if __name__ == "__main__":
    main()
