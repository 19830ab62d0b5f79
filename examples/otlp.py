"""Scores by plain OTLP, for whatever takes it: python examples/otlp.py [URL].

Jaeger, for one, which shows the scores as tags of the answer's span:

    docker run --rm -p 16686:16686 -p 4318:4318 jaegertracing/all-in-one     # http://127.0.0.1:16686

An OpenTelemetry collector, Tempo, Honeycomb and others take the same; without an address, OTEL_EXPORTER_OTLP_ENDPOINT and
OTEL_EXPORTER_OTLP_HEADERS say where to send, and with which key.
"""

import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import ragspan

endpoint = f"{sys.argv[1]}/v1/traces" if len(sys.argv) > 1 else None
provider = TracerProvider(resource=Resource.create({"service.name": "payments"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("payments")

PASSAGES = ["Beta settles card payments after midnight.", "Gamma sends invoices by registered mail."]
ANSWERS = {
    "When are card payments settled?": "Beta settles card payments after midnight.",
    "Who prints banknotes?": "Delta prints 400 banknotes an hour in Zurich.",
}

# Without a framework: the block is one answer. Its span stands below the one that is current.
for question, answer in ANSWERS.items():
    with tracer.start_as_current_span("POST /ask"), ragspan.capture(question, name="payments") as captured:
        captured.contexts = PASSAGES
        captured.response = answer
    print(answer)

if ragspan.default_engine().flush(timeout=5):  # a server need not: scores follow in the background, and at exit
    print("the answers and their scores were sent")
else:
    print("the endpoint could not be reached")
