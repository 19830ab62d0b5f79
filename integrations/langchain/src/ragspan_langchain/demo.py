"""LangChain's side of `ragspan demo`: a retrieval chain and an agent, with the handler attached as a user would."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnablePassthrough
from langchain_core.tools import create_retriever_tool

from ragspan.demo import PROMPT, Asked, Way, find
from ragspan_langchain.handler import RagspanCallbackHandler

_CHUNKS_READ = 5


class Handbook(BaseRetriever):
    """Searches the handbook."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002  the framework's signature
        return [
            Document(id=page.name, page_content=page.text, metadata={"source": page.name, "score": score})
            for page, score in find(query)
        ]


class ScriptedChatModel(GenericFakeChatModel):
    """Says what the script says; tools are called as the script calls them."""

    metadata: dict[str, Any] | None = {"ls_model_name": "scripted"}  # noqa: RUF012  a field of pydantic

    def bind_tools(self, *_: Any, **__: Any) -> ScriptedChatModel:
        return self


class LangChainDemo:
    """Answers the demo's questions with LangChain."""

    def __init__(self) -> None:
        self._create_agent: Any = None
        with contextlib.suppress(ImportError):
            from langchain.agents import create_agent  # before a judge is asked: imports in two threads can meet

            self._create_agent = create_agent
        self._config: RunnableConfig = {"callbacks": [RagspanCallbackHandler()]}

    def answer(self, asked: Asked) -> str | None:
        """Let a chain or an agent answer; returns what the caller got. Without LangChain there is no agent."""
        if asked.way is Way.AGENT:
            if self._create_agent is None:
                return None
            tool = create_retriever_tool(Handbook(), "search_handbook", "Searches the handbook.")
            call = {"name": tool.name, "args": {"query": asked.question}, "id": "search-1", "type": "tool_call"}
            replies = [AIMessage("", tool_calls=[call]), AIMessage(asked.response)]
            agent = self._create_agent(ScriptedChatModel(messages=iter(replies)), [tool], name="handbook agent")
            result = agent.invoke({"messages": [{"role": "user", "content": asked.question}]}, config=self._config)
            return str(result["messages"][-1].text)
        model = ScriptedChatModel(messages=iter([AIMessage(asked.response)]))
        joined = Handbook() | (lambda found: "\n\n".join(document.page_content for document in found))
        context: Any = {"context": joined, "question": RunnablePassthrough()}
        chain = context | ChatPromptTemplate.from_template(PROMPT) | model | StrOutputParser()
        chain = chain.with_config(run_name="handbook")
        if asked.way is Way.CLOSED_EARLY:  # as a user does who closes the page
            with contextlib.closing(chain.stream(asked.question, config=self._config)) as chunks:
                return "".join(itertools.islice(chunks, _CHUNKS_READ))
        answer: str = chain.invoke(asked.question, config=self._config)
        return answer
