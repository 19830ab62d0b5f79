"""LangChain's side of `ragspan demo`: a retrieval chain and an agent, with the handler attached as a user would."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from pydantic import ConfigDict

from ragspan.demo.corpus import Passage, Search
from ragspan.demo.extractive import PROMPT, answer, split_prompt
from ragspan.demo.script import Asked, Manner, Way
from ragspan.exceptions import ConfigurationError
from ragspan_langchain.handler import RagspanCallbackHandler

_TOOL = "search_documentation"
_CHUNKS_READ = 12


class DocumentationRetriever(BaseRetriever):
    """Searches ragspan's documentation."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    search: Search

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002  the framework's signature
        return [
            Document(id=passage.id, page_content=passage.text, metadata={"source": passage.source, "score": score})
            for passage, score in self.search.find(query)
        ]


class ExtractiveChatModel(BaseChatModel):
    """Answers with sentences from the prompt; with a tool at hand it searches first."""

    manner: Manner = Manner.GOOD

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[tool.name for tool in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  as above
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, kwargs.get("tools")))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        words = re.findall(r"\S+\s*", self._reply(messages, None).text)
        for place, word in enumerate(words, start=1):
            last: Literal["last"] | None = "last" if place == len(words) else None
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word, chunk_position=last))
            if run_manager is not None:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk

    def _reply(self, messages: Sequence[BaseMessage], tools: Sequence[str] | None) -> AIMessage:
        found = [message.text for message in messages if isinstance(message, ToolMessage)]
        if tools and not found:
            call = {"name": tools[0], "args": {"query": messages[-1].text}, "id": "search-1", "type": "tool_call"}
            return AIMessage("", tool_calls=[call])
        if found:
            questions = [message.text for message in messages if isinstance(message, HumanMessage)]
            return AIMessage(answer(questions[-1], "\n\n".join(found), self.manner))
        passages, question = split_prompt(messages[-1].text)
        return AIMessage(answer(question, passages, self.manner))


class LangChainDemo:
    """Answers the demo's questions with LangChain."""

    def __init__(self, *, passages: Sequence[Passage], model: str | None) -> None:
        self._retriever = DocumentationRetriever(search=Search(passages))
        self._real_model = None if model is None else _real_model(model)
        self._create_agent = _agent_maker()
        self._config: RunnableConfig = {"callbacks": [RagspanCallbackHandler()]}

    def answer(self, asked: Asked) -> list[str]:
        """Answer these questions in this way; returns what the caller got."""
        question = asked.questions[0]
        if asked.way is Way.AGENT:
            result = self._agent(asked.manner).invoke({"messages": [HumanMessage(question)]}, config=self._config)
            return [result["messages"][-1].text]
        chain = self._chain(asked.manner)
        if asked.way is Way.BATCH:
            return chain.batch(list(asked.questions), config=self._config)
        if asked.way is Way.STREAM:
            return ["".join(chain.stream(question, config=self._config))]
        if asked.way is Way.ASTREAM:
            return [asyncio.run(self._read(chain, question))]
        if asked.way is Way.CLOSED_EARLY:
            return [self._read_some(chain, question)]
        return [chain.invoke(question, config=self._config)]

    def _chain(self, manner: Manner) -> Runnable[str, str]:
        prompt = ChatPromptTemplate.from_template(PROMPT)
        context = self._retriever | _joined
        return (
            {"context": context, "question": RunnablePassthrough()} | prompt | self._model(manner) | StrOutputParser()
        ).with_config(run_name="documentation")

    def _agent(self, manner: Manner) -> Runnable[Any, Any]:
        tool = create_retriever_tool(
            self._retriever, _TOOL, "Searches ragspan's documentation.", response_format="content_and_artifact"
        )
        return cast("Runnable[Any, Any]", self._create_agent(self._model(manner), [tool], name="agent"))

    def _model(self, manner: Manner) -> BaseChatModel:
        return self._real_model or ExtractiveChatModel(manner=manner)

    async def _read(self, chain: Runnable[str, str], question: str) -> str:
        return "".join([chunk async for chunk in chain.astream(question, config=self._config)])

    def _read_some(self, chain: Runnable[str, str], question: str) -> str:
        """Read as a user does who closes the page."""
        with contextlib.closing(chain.stream(question, config=self._config)) as chunks:  # type: ignore[type-var]  # a generator
            return "".join(itertools.islice(chunks, _CHUNKS_READ))


def _joined(documents: Sequence[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def _agent_maker() -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError as error:
        raise ConfigurationError("the demo's agent needs LangChain: pip install 'ragspan-langchain[demo]'") from error
    return create_agent


def _real_model(name: str) -> BaseChatModel:
    provider, colon, model = name.partition(":")
    if provider != "openai" or not colon or not model:
        raise ConfigurationError(f"--model is {name!r}, but should be 'openai:<name>', such as 'openai:gpt-4o-mini'")
    try:
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        raise ConfigurationError("--model openai:… needs langchain-openai: pip install langchain-openai") from error
    return ChatOpenAI(model=model)
