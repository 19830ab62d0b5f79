"""`ragspan worker --otlp`: real traces in, scores out to another receiver of OTLP."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from servers.broker import Broker
from servers.otlp import FleetBackend
from typer.testing import CliRunner
from waiting import until

from ragspan import RagRecord
from ragspan.cli import app
from ragspan_nats.message import json_in

DOCUMENT = "The workshop opens at nine on weekdays and at ten on Saturdays."
QUESTION, RESPONSE = "When does the workshop open?", "The workshop opens at nine on weekdays."


@pytest.fixture
def backend():
    """A tracing tool."""
    with FleetBackend() as backend:
        yield backend


def ask(*exporters):
    """One answer of an application that OpenInference traces; the context of its span."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    prompt = f"Context: {DOCUMENT}\nQuestion: {QUESTION}"
    chain = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": RESPONSE}
    search = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": QUESTION,
        "retrieval.documents.0.document.content": DOCUMENT,
    }
    model = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": RESPONSE,
    }
    with tracer.start_as_current_span("ask", attributes=chain) as span:
        for name, attributes in (("search", search), ("model", model)):
            tracer.start_span(name, attributes=attributes).end()
    provider.shutdown()
    return span.get_span_context()


def assert_scored(backend, context):
    until(lambda: len(backend.spans) >= 2, what="the spans of the scores")
    assert {span.name for span in backend.spans} == {
        f"evaluation {name}" for name in ("context_adherence", "faithfulness")
    }
    for span in backend.spans:
        assert (span.trace_id, span.parent_id) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
        assert all(span.attributes[f"ragspan.score.{name}"] > 0.5 for name in span.scores)
        assert span.scores


def ready_address(log):
    """Where it takes spans over HTTP, once it does."""
    return until(lambda: re.search(r"http://\S+/v1/traces", log()), what="its address")[0]


def test_an_answer_that_is_traced_gets_scores_in_its_trace(backend, run_worker, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")

    def use(log):
        context = ask(OTLPSpanExporter(ready_address(log)))
        assert_scored(backend, context)

    code, said = run_worker("--otlp", "127.0.0.1:0", "--quiet", "0.05", use=use)

    assert code == 0
    address = re.search(r"http://127.0.0.1:\d+/v1/traces", said)[0]
    assert said.splitlines() == [
        f"ragspan worker: OTLP at {address}; answers are scored by overlap: context_adherence, faithfulness",
        "ragspan worker: 1 trace, 1 answer in it",
    ]


def test_with_a_sink_the_fleet_gets_the_records(run_worker, tmp_path, monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    contexts = []
    with Broker(tmp_path) as broker:
        monkeypatch.setenv("RAGSPAN_SINK", broker.url)
        code, said = run_worker(
            *("--otlp", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0", "--quiet", "0.05"),
            use=lambda log: contexts.append(ask(OTLPSpanExporter(ready_address(log)))),
        )
        (message,) = broker.messages("ragspan")

    assert (code, re.sub(r":\d+", ":PORT", said.splitlines()[0])) == (
        0,
        "ragspan worker: OTLP at http://127.0.0.1:PORT/v1/traces and 127.0.0.1:PORT; answers are for the fleet",
    )
    record = RagRecord.from_json(json_in(message.payload, message.headers))
    assert (record.question, record.response) == (QUESTION, RESPONSE)
    assert [one.text for one in record.contexts] == [DOCUMENT]
    assert (record.parent.trace_id, record.parent.span_id) == (contexts[0].trace_id, contexts[0].span_id)


def bodies(number, size):
    """Requests with so many answers each, as OpenInference would write them."""
    for _ in range(number):
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("openinference.instrumentation.langchain")
        texts = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": RESPONSE}
        for _ in range(size):
            tracer.start_span("ask", attributes=texts).end()
        yield encode_spans(exporter.get_finished_spans()).SerializeToString()


def sent(url, body):
    """The answer's status; None where nobody answers."""
    try:
        return httpx.post(url, content=body, headers={"content-type": "application/x-protobuf"}, timeout=60).status_code
    except httpx.TransportError:
        return None


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("requests_before_the_end", [4, 40])
def test_every_answer_that_was_taken_is_in_the_stream_or_counted_though_it_is_stopped_meanwhile(
    run_worker, tmp_path, monkeypatch, requests_before_the_end
):
    """More than the sink's queue holds comes in a burst; whoever is refused may try again elsewhere."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with Broker(tmp_path) as broker, ThreadPoolExecutor(4) as senders:
        monkeypatch.setenv("RAGSPAN_SINK", broker.url)
        begun = []

        def use(log):
            url = ready_address(log)
            begun.extend(senders.submit(sent, url, body) for body in bodies(40, 100))
            for one in begun[: requests_before_the_end // 2]:
                one.result()

        code, said = run_worker("--otlp", "127.0.0.1:0", "--quiet", "0.5", use=use)
        statuses = Counter(one.result() for one in begun)
        stored = broker.stream("ragspan").messages

    assert (code, set(statuses) <= {200, 503, None}) == (0, True)
    not_read = sum(map(int, re.findall(r"(\d+) traces? not read in time", said)))
    assert 0 < stored == 100 * statuses[200] - not_read
    assert re.search(rf"\b{statuses[503]} requests? refused", said) or not statuses[503]
    assert "dropped" not in said


OTLP = {"OTEL_TRACES_EXPORTER": "otlp"}


def refused(*arguments, **environment):
    nothing = {"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_EXPORTER": "console", "RAGSPAN_SINK": ""}
    done = CliRunner().invoke(app, ["worker", *arguments], env={**nothing, **environment})
    assert done.exit_code == 2, done.output
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("option", "environment", "said"),
    [
        ("--otlp 4318", {}, "the address '4318' should have a host and a port, as in 127.0.0.1:PORT"),
        ("--otlp 127.0.0.1:4318", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", **OTLP}, "own address"),
        ("--otlp-grpc :4317", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", **OTLP}, "own address"),
        ("--quiet 0", {}, "quiet is 0"),
        ("--memory 0", {}, "Invalid value for '--memory'"),
        ("--judge oracle", {}, "there is no judge 'oracle'"),
        ("", {"RAGSPAN_ENABLED": "false"}, "RAGSPAN_ENABLED is false"),
        ("", {"RAGSPAN_ENABLED": "false", "RAGSPAN_EMITTERS": "console"}, "RAGSPAN_ENABLED is false"),
    ],
)
def test_an_option_or_a_setting_that_cannot_be_used_is_named(option, environment, said):
    assert said in refused("--otlp", "127.0.0.1:0", *option.split(), **environment)
