"""LangChain's runs in LangSmith by LangSmith's own tracer, and our feedback on them."""

from __future__ import annotations

import langsmith
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers import LangChainTracer
from writer_law import APPLICATION, PATIENCE, run_with

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Faithfulness
from ragspan_langchain import RagspanCallbackHandler

FACT = "Payments settle within two business days."


class Store(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(FACT)]


def test_scores_are_on_the_run_of_langsmiths_tracer_without_any_span(server, monkeypatch, make_writer):
    server.runs.clear()
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    engine = ScoringEngine(metrics=[Faithfulness(OverlapJudge())], emitters=[make_writer()], judging="thread")
    monkeypatch.delenv("LANGSMITH_TRACING")  # LangChain would add the tracer once more
    client = langsmith.Client(api_url=server.url, api_key="ls-secret")
    handlers = [RagspanCallbackHandler(sink=engine), LangChainTracer(client=client)]
    prompt = RunnableLambda(lambda given: f"{given['context'][0].page_content}\n{given['question']}")
    chain = {"context": Store(), "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=[FACT])

    chain.with_config(callbacks=handlers, run_name="payments").invoke("When do payments settle?")
    client.flush(timeout=PATIENCE)
    engine.flush(PATIENCE)
    engine.shutdown(1.0)

    (feedback,) = server.feedback.values()
    (root,) = [run for run in server.posted if run["name"] == "payments"]
    assert (feedback["key"], feedback["score"], feedback["run_id"]) == ("faithfulness", 1.0, root["id"])


@pytest.mark.slow
def test_variables_alone_bring_runs_and_scores_of_a_program_there(server, backend):
    variables = {**backend.variables(server.url), "LANGSMITH_TRACING": "true", "RAGSPAN_EMITTERS": "langsmith"}

    done = run_with({**variables, "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, server, APPLICATION, "{}")

    assert (done.returncode, done.stderr) == (0, "")
    (root,) = [run for run in server.posted if run["name"] == "payments"]
    assert {feedback["run_id"] for feedback in server.feedback.values()} == {root["id"]}
    assert {"faithfulness", "context_adherence"} <= set(server.scores)
