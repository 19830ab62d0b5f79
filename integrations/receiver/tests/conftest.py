"""Spans as OTLP has them, and a receiver that serves them."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from commands import run_worker  # noqa: F401 - a fixture
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from recorded_spans import SEEN, WHOLE

from ragspan.testing import RecordingSink
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.servers import HTTPServer

SCOPE = "openinference.instrumentation.langchain"


@pytest.fixture(autouse=True)
def whole_records(request):
    """Compares what records hold besides what a test looks at."""
    with WHOLE.compared(request, SEEN, without=()):
        yield


def attribute(name, value):
    held = AnyValue()
    if isinstance(value, dict):
        held.kvlist_value.CopyFrom(KeyValueList(values=[attribute(key, one) for key, one in value.items()]))
    elif isinstance(value, list):
        held.array_value.SetInParent()
        held.array_value.values.extend(attribute("", one).value for one in value)
    elif value is not None:
        kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value", bytes: "bytes_value"}
        setattr(held, kinds[type(value)], value)
    return KeyValue(key=name, value=held)


@pytest.fixture
def span():
    """Makes a span: `span(trace_id, span_id, parent, attributes, **fields)`, ids being bytes."""

    def make(trace_id, span_id=None, parent=b"", attributes=None, **fields):
        one = (
            ExportTraceServiceRequest()
            .resource_spans.add()
            .scope_spans.add()
            .spans.add(
                trace_id=trace_id, span_id=span_id or os.urandom(8), parent_span_id=parent, name="work", **fields
            )
        )
        one.attributes.extend(attribute(name, value) for name, value in (attributes or {}).items())
        return one

    return make


@pytest.fixture
def answer(span):
    """Makes the span of an answer, a root if no parent is given."""

    def make(trace_id, question="Who?", response="Ada.", **fields):
        texts = {"openinference.span.kind": "CHAIN", "input.value": question, "output.value": response}
        return span(trace_id, attributes=texts, **fields)

    return make


@pytest.fixture
def request_with():
    """Makes a request with these spans."""

    def make(*spans, scope=SCOPE, **resource):
        request = ExportTraceServiceRequest()
        of_resource = request.resource_spans.add()
        of_resource.resource.attributes.extend(attribute(name, value) for name, value in resource.items())
        of_scope = of_resource.scope_spans.add()
        of_scope.scope.name = scope
        of_scope.spans.extend(spans)
        return request

    return make


@dataclass
class Served:
    receiver: Receiver
    sink: RecordingSink
    address: str

    @property
    def url(self):
        return f"http://{self.address}/v1/traces"

    async def record(self):
        """The next record."""
        deadline = time.monotonic() + 60
        while not (records := self.sink.records()):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        (record,) = records
        return record


@pytest.fixture
def serving():
    """A receiver that serves OTLP over HTTP while the block runs, and reads traces as they end."""

    @asynccontextmanager
    async def serve(limits, **options):
        sink = RecordingSink()
        receiver = Receiver(sink, limits=limits, **options)
        server = HTTPServer(receiver, "127.0.0.1:0")
        await server.start()
        running = asyncio.create_task(asyncio.to_thread(receiver.read_until_stopped))
        try:
            yield Served(receiver, sink, f"127.0.0.1:{server.port}")
        finally:
            await server.stop()
            receiver.stop()
            await running

    return serve
