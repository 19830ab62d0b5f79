"""LlamaIndex's side of `ragspan demo`: a query engine, with the handler attached as a user would."""

from __future__ import annotations

from typing import Any

from llama_index.core import PromptTemplate
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ragspan.demo import PROMPT, Asked, find
from ragspan_llama_index.handler import RagspanCallbackHandler


class Handbook(BaseRetriever):
    """Searches the handbook."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = find(query_bundle.query_str)
        return [NodeWithScore(node=TextNode(id_=page.name, text=page.text), score=score) for page, score in found]


class ScriptedModel(CustomLLM):
    """Says what the script says."""

    response: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002  the framework's signature
        return CompletionResponse(text=self.response)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: ARG002, FBT001, FBT002  as above
        yield CompletionResponse(text=self.response, delta=self.response)


class LlamaIndexDemo:
    """Answers the demo's questions with LlamaIndex."""

    def __init__(self) -> None:
        self.handler = RagspanCallbackHandler()  # constructing it attaches it

    def answer(self, asked: Asked) -> str:
        """Let a query engine answer."""
        template = PromptTemplate(PROMPT.format(context="{context_str}", question="{query_str}"))
        model = ScriptedModel(response=asked.response)
        engine = RetrieverQueryEngine.from_args(Handbook(), llm=model, text_qa_template=template)
        return str(engine.query(asked.question))
