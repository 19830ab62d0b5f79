"""A web application that answers with a LangChain RAG chain, with scoring or without.

    python -m serving.application MODE [--broker URL]

An answer takes ten passages of a kilobyte and a model that waits 30 ms, as one does for a provider. Each request has a
span of its own, exported as the `OTEL_*` variables say. `GET /report` sends out whatever waits and tells what was scored.

Modes:
    off          ragspan is not even imported
    helper       scores computed in the helper process
    thread       scores computed in a thread of the application
    nats         records published to the broker at that address, for workers elsewhere
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from serving.passages import passages, question
from serving.processes import HOST, PATIENCE, say

if TYPE_CHECKING:
    from ragspan import ScoringEngine
    from ragspan_nats import NatsSink

ENGINES: dict[str, dict[str, Any]] = {
    "helper": {"judging": "helper"},
    "thread": {"judging": "thread"},
}
PUBLISHING = "nats"
MODES = ("off", *ENGINES, PUBLISHING)
PROVIDER_SECONDS = 0.03
PASSAGES = 10
INVENTED = "Everything else is done by hand in Geneva."


class Archive(BaseRetriever):
    """Finds other passages for each question."""

    texts: list[str]

    def _found(self, query: str) -> list[Document]:
        first = sum(query.encode()) * PASSAGES
        places = [(first + place) % len(self.texts) for place in range(PASSAGES)]
        return [Document(page_content=self.texts[place], metadata={"page": place}) for place in places]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._found(query)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._found(query)


class DistantModel(BaseChatModel):
    """Waits as for a provider, and answers with a sentence of each of the first three passages and one of its own."""

    @property
    def _llm_type(self) -> str:
        return "distant"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        found = messages[-1].text.split("\n\n")
        sentences = [passage.partition(". ")[0] + "." for passage in found[1:4]]
        message = AIMessage(" ".join([*sentences, INVENTED]))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(PROVIDER_SECONDS)
        return self._generate(messages)


def rag_chain() -> Runnable[str, str]:
    context = Archive(texts=passages(500)) | (lambda found: "\n\n".join(document.page_content for document in found))
    prompt = ChatPromptTemplate.from_template("Context:\n\n{context}\n\nQuestion: {question}")
    chain: Runnable[str, str] = (
        {"context": context, "question": RunnablePassthrough()} | prompt | DistantModel() | StrOutputParser()
    )
    return chain


def traced() -> TracerProvider:
    """The global provider, as an application sets one up that is configured by its environment."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def engine_for(mode: str) -> ScoringEngine:
    from ragspan import ScoringEngine
    from ragspan.config import Settings
    from ragspan.metrics.metric_catalogue import metrics_from
    from ragspan.telemetry import OTelEmitter

    return ScoringEngine(metrics=metrics_from(Settings.from_environment()), emitters=[OTelEmitter()], **ENGINES[mode])


def sink_for(mode: str, broker: str | None) -> ScoringEngine | NatsSink | None:
    if mode == "off":
        return None
    if mode != PUBLISHING:
        return engine_for(mode)
    from ragspan_nats import NatsSink

    return NatsSink(broker or "")


def handlers_for(sink: ScoringEngine | NatsSink | None) -> list[BaseCallbackHandler]:
    if sink is None:
        return []
    from ragspan_langchain import RagspanCallbackHandler

    return [RagspanCallbackHandler(sink=sink)]


def application(sink: ScoringEngine | NatsSink | None, provider: TracerProvider) -> Starlette:
    chain, handlers, tracer = rag_chain(), handlers_for(sink), provider.get_tracer("application")

    async def answer(request: Request) -> PlainTextResponse:
        asked = question(int(request.query_params["number"]))
        with tracer.start_as_current_span("GET /answer", kind=trace.SpanKind.SERVER):
            return PlainTextResponse(await chain.ainvoke(asked, config={"callbacks": handlers}))

    async def report(_: Request) -> JSONResponse:
        if sink is not None:
            await asyncio.to_thread(sink.flush, PATIENCE)
        await asyncio.to_thread(provider.force_flush)
        if sink is None:
            return JSONResponse({})
        stats, is_published = sink.stats(), type(sink).__name__ == "NatsSink"
        published = stats.finished if is_published else 0
        return JSONResponse(stats._asdict() | {"scored": stats.finished - published, "published": published})

    return Starlette(routes=[Route("/answer", answer), Route("/report", report)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers questions, with scoring or without.")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--broker", metavar="URL", help="where the mode nats publishes to")
    arguments = parser.parse_args()
    served = application(sink_for(arguments.mode, arguments.broker), traced())
    config = uvicorn.Config(
        served,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=3600,  # else the load loses a request now and then on a connection that is being closed
    )
    server = uvicorn.Server(config)
    # With the protocol named: asyncio switches Nagle's algorithm off only then, as it does where it opens the port itself.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind((HOST, 0))
        say(port=listening.getsockname()[1])
        server.run(sockets=[listening])


if __name__ == "__main__":
    main()
