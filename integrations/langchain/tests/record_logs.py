"""Runs some programs and records the logs of their requests: `python integrations/langchain/tests/record_logs.py`."""

from __future__ import annotations

import contextlib

from agent_programs import calls, search, search_agent, user_says
from langchain_core.messages import AIMessage, HumanMessage
from lc_captures import ChainCaptures
from rag_programs import ANSWER, FOUND, PUMP, QUESTION, BrokenModel, FixedRetriever, chat_model, documents, rag_chain
from recorded_logs import save


def chain(config):
    rag_chain().invoke(QUESTION, config)


def left_stream(config):
    chunks = rag_chain().stream(QUESTION, config)
    next(chunks)
    next(chunks)
    chunks.close()


def failed_model(config):
    with contextlib.suppress(RuntimeError):
        rag_chain(model=BrokenModel()).invoke(QUESTION, config)


def agent(config):
    earlier = [HumanMessage("Good day!"), AIMessage("Good day.")]
    asked = user_says(QUESTION)
    asked["messages"] = [*earlier, *asked["messages"]]
    search_agent(calls(search("pump")), ANSWER).invoke(asked, config)


def generator_of_documents(config):
    source = FixedRetriever(result=lambda: (document for document in documents(*FOUND)))
    rag_chain(source, formatter=lambda found: "\n".join(document.page_content for document in found)).invoke(
        QUESTION, config
    )


def nothing_found(config):
    rag_chain(FixedRetriever(result=[])).invoke(QUESTION, config)


def rewritten_documents(config):
    def shout(found):
        found[0].page_content = found[0].page_content.upper()
        return found[0].page_content

    rag_chain(FixedRetriever(result=documents(PUMP)), formatter=shout).invoke(QUESTION, config)


def bare_model(config):
    chat_model().invoke(QUESTION, config)


PROGRAMS = (
    chain,
    left_stream,
    failed_model,
    agent,
    generator_of_documents,
    nothing_found,
    rewritten_documents,
    bare_model,
)

if __name__ == "__main__":
    for program in PROGRAMS:
        captured = ChainCaptures()
        program(captured.config)
        (capture,) = captured.sink.take()
        save(program.__name__, capture.log)
