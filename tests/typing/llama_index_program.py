"""A LlamaIndex application as users write it: checked by the type checker, never run."""

from __future__ import annotations

from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.schema import TextNode

import ragspan
from ragspan import ScoringEngine
from ragspan.judges import Judge, LLMJudge
from ragspan.judges.base import ChatClient
from ragspan.metrics import ContextAdherence
from ragspan.telemetry import OTelEmitter
from ragspan.testing import RecordingSink
from ragspan_llama_index import LlamaIndexChatClient, RagspanCallbackHandler, RagspanLlamaIndexInstrumentor


def the_familiar_way(passages: list[str], question: str) -> str:
    Settings.callback_manager = CallbackManager([RagspanCallbackHandler()])
    index = VectorStoreIndex([TextNode(text=passage) for passage in passages])
    return str(index.as_query_engine().query(question))


def judged_by_the_models_of_the_framework(llm: LLM) -> ScoringEngine:
    client: ChatClient = LlamaIndexChatClient(llm)
    judge: Judge = LLMJudge(client, name="own")
    return ScoringEngine(metrics=[ContextAdherence(judge)], emitters=[OTelEmitter()])


def attached_and_detached(engine: ScoringEngine) -> int:
    handler = RagspanCallbackHandler(sink=engine)
    RagspanCallbackHandler(sink=RecordingSink()).detach()
    handler.detach()
    return handler.open_spans


def every_call_of_the_process(engine: ScoringEngine) -> None:
    instrumentor = RagspanLlamaIndexInstrumentor()
    instrumentor.instrument(sink=engine)
    instrumentor.uninstrument()


def passages_of_a_tool(found: list[TextNode]) -> str:
    ragspan.record_contexts(found)
    return "\n\n".join(node.text for node in found)
