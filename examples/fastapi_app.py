"""A FastAPI service that streams its answers and has them scored: python examples/fastapi_app.py [PORT].

    curl -N 'http://127.0.0.1:8000/ask?question=When+are+card+payments+settled%3F'

The client gets its answer as it always did; the scores follow on the answer's span, which is printed here. For a tracing
tool, replace the exporter, for instance by OTLPSpanExporter(). With opentelemetry-instrumentation-fastapi the answer's span
stands below that of the request.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan_langchain import RagspanCallbackHandler


class Payments(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:  # noqa: ARG002  it knows one passage
        return [Document("Beta settles card payments after midnight.")]


def payments_chain() -> Runnable[str, str]:
    model = GenericFakeChatModel(messages=repeat(AIMessage("Beta settles card payments after midnight.")))  # your model
    prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
    return {"context": Payments(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One engine and one handler for the life of the process; with several workers, for each of them."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
    judge = OverlapJudge()  # embedded; OpenAIJudge("gpt-4o-mini") is the LLM judge
    engine = ScoringEngine(
        metrics=[ContextAdherence(judge), Faithfulness(judge)],
        emitters=[OTelEmitter(tracer_provider=provider)],
    )
    handler = RagspanCallbackHandler(sink=engine)
    app.state.chain = payments_chain().with_config(run_name="payments", callbacks=[handler])
    yield
    # The last answers get their scores before the process ends; both wait, so not in the event loop.
    report = await asyncio.to_thread(engine.shutdown, 10)
    await asyncio.to_thread(provider.shutdown)
    print(f"scored {engine.stats().finished} answers, {report.abandoned} were left at the end", file=sys.stderr)


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(request: Request, question: str, session: str | None = None) -> StreamingResponse:
    """Stream the answer, token by token. A client that hangs up midway makes it an aborted one, which is not judged."""
    config = {"metadata": {"session_id": session} if session else {}}
    return StreamingResponse(request.app.state.chain.astream(question, config), media_type="text/plain")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
