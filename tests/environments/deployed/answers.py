"""The application of the deploy table: a LangChain chain behind ASGI, WSGI and Celery. It answers with the process that did."""

import asyncio
import os
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

if os.environ.get("CONFIGURES"):
    import ragspan

    ragspan.configure()

FACT = "Beta settles card payments after midnight."


class Archive(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(FACT)]


prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
chain = {"context": Archive(), "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=[FACT])


def answer(name):
    chain.with_config(run_name=name).invoke("When are card payments settled?")
    return str(os.getpid()).encode()


async def asgi(scope, receive, send):
    """Answers in the event loop and in threads, by turns."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    name = scope["path"].strip("/")
    if int(name) % 2:
        body = await asyncio.to_thread(answer, name)
    else:
        await chain.with_config(run_name=name).ainvoke("When are card payments settled?")
        body = str(os.getpid()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def wsgi(environment, start_response):
    body = answer(environment["PATH_INFO"].strip("/"))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def answered(name):
    """What a Celery task answered has no reply: a file with its name tells."""
    pid = answer(name)
    (Path("answered") / name).write_bytes(pid)
