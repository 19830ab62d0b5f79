"""Scores for a program whose search nobody sees, by its prompts: python examples/unknown_contexts.py.

The plain `openai` client, twice: in a `ragspan.capture` block that is told the prompt, and traced by OpenInference, whose spans
`ragspan worker --otlp` would receive. With unknown_contexts="prompt" (RAGSPAN_UNKNOWN_CONTEXTS=prompt) an answer without known
documents is judged by the text of its prompts: messages with the user's role, without the question, and results of tools.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from openai import OpenAI
from openinference.instrumentation import TracerProvider, get_llm_attributes
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragspan
from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.testing import RecordingEmitter
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import batch_of

QUESTION = "When are card payments settled?"


class Model(BaseHTTPRequestHandler):
    """Your model: it knows one sentence, and invents another."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = "Beta settles card payments after midnight. Gamma sends invoices by registered mail."
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        body = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def search(query: str) -> str:  # noqa: ARG001  it knows one passage
    """Your search: a query of a database, a call of a service. No callback shows it."""
    return "Beta settles card payments after midnight, and Alpha stores customer profiles."


def messages(question: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "Answer by the context."},
        {"role": "user", "content": f"Context: {search(question)}\n\nQuestion: {question}"},
    ]


def ask(prompt: list[dict[str, str]]) -> str:
    reply = client.chat.completions.create(model="m", messages=prompt)  # type: ignore[arg-type]
    return reply.choices[0].message.content or ""


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")

judge = OverlapJudge()
seen = RecordingEmitter()  # in production: OTelEmitter()
engine = ScoringEngine(
    metrics=[ContextAdherence(judge), Faithfulness(judge)], emitters=[seen], unknown_contexts="prompt"
)

# In a block of ragspan.capture ----------------------------------------------------------------------------------------

with ragspan.capture(question=QUESTION, sink=engine) as answer:
    answer.prompt = messages(QUESTION)
    answer.response = ask(answer.prompt)

# Traced by OpenInference ----------------------------------------------------------------------------------------------

receiver = Receiver(engine)  # a part of `ragspan worker --otlp`
spans = InMemorySpanExporter()  # yours sends them to a collector, and that to `ragspan worker --otlp`
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
tracer = provider.get_tracer("application")

with tracer.start_as_current_span("answer", openinference_span_kind="chain") as chain:
    chain.set_input(QUESTION)  # the user's own words: without them nobody can tell the question from the documents
    prompt = messages(QUESTION)
    with tracer.start_as_current_span("chat", openinference_span_kind="llm") as call:  # as OpenAIInstrumentor does
        said = ask(prompt)
        reply = {"role": "assistant", "content": said}
        call.set_attributes(get_llm_attributes(model_name="m", input_messages=prompt, output_messages=[reply]))  # type: ignore[arg-type,list-item]
    chain.set_output(said)


receiver.take(batch_of(encode_spans(spans.get_finished_spans()).SerializeToString(), most=2**20))
receiver.finish(10)

engine.flush(timeout=60)
for scored in seen.scored:
    for name, outcome in scored.outcomes.items():
        print(f"{scored.record.framework} {name}: {outcome}")
engine.shutdown(timeout=10)
server.shutdown()
