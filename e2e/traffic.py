"""Questions to a LangChain chain and a LlamaIndex query engine, answered well and badly as the tests want it."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, TextNode


@dataclass(frozen=True)
class Asked:
    """A question, what the search finds, and what the model says."""

    question: str
    passages: tuple[str, ...]
    response: str
    is_good: bool
    """Whether the passages support the response. The embedded judge has to see it the same way: a test checks that."""

    @property
    def name(self) -> str:
        """What the chain or the engine is called, and so the answer's span: `invoke_workflow <name>`."""
        return self.question.rstrip("?")


LOANS = (
    "A book is lent for 28 days, and a film for seven days. A loan can be renewed twice unless another reader waits."
)
FEES = "A late book costs 20 cents a day, and never more than four euros."
ROOMS = "Six study rooms on the second floor can be booked for two hours at a time, free of charge."
HOURS = "The library opens at nine in the morning and closes at eight in the evening, on Saturdays at four."
CARDS = "A reader's card is valid for a year. It costs twelve euros, and nothing for readers below eighteen."

SCRIPT = (
    Asked("How long is a book lent?", (LOANS, FEES, HOURS), "A book is lent for 28 days.", is_good=True),
    Asked("When does the library close?", (HOURS, ROOMS), "The library closes at eight in the evening.", is_good=True),
    Asked(
        "What does a late book cost?",
        (CARDS, FEES),
        "Professor Lindqvist decides each case in Geneva, within 45 working days.",
        is_good=False,
    ),
    Asked(
        "Can study rooms be booked?",
        (ROOMS, LOANS, CARDS),
        "Six study rooms on the second floor can be booked for two hours at a time.",
        is_good=True,
    ),
    Asked(
        "Who pays nothing for a card?",
        (CARDS, HOURS),
        "Veterans of the Norwegian navy receive theirs from 300 volunteers in Oslo.",
        is_good=False,
    ),
)


class FoundByLangChain(LangChainRetriever):
    """Finds what the script says."""

    passages: tuple[str, ...]

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(text, id=f"library-{place}") for place, text in enumerate(self.passages)]


def ask_langchain(asked: Asked, handler) -> str:
    """The answer of a LangChain chain, with the handler in its configuration."""
    chain = (
        {
            "context": FoundByLangChain(passages=asked.passages)
            | (lambda found: "\n\n".join(document.page_content for document in found)),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("Answer from these passages:\n\n{context}\n\nQuestion: {question}")
        | GenericFakeChatModel(messages=iter([AIMessage(asked.response)]))
        | StrOutputParser()
    ).with_config(run_name=asked.name)
    return chain.invoke(asked.question, config={"callbacks": [handler]})


class FoundByLlamaIndex(LlamaIndexRetriever):
    """Finds what the script says."""

    def __init__(self, passages: tuple[str, ...]) -> None:
        super().__init__()
        self._passages = passages

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(id_=f"library-{place}", text=text), score=1 / (place + 1))
            for place, text in enumerate(self._passages)
        ]


class SaysOneThing(CustomLLM):
    """A model that says what the script wants."""

    says: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text=self.says)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **_):
        yield self.complete(prompt)


def ask_llama_index(asked: Asked) -> str:
    """The answer of a LlamaIndex query engine, which an attached handler hears of."""
    model = SaysOneThing(says=asked.response)
    engine = RetrieverQueryEngine(
        retriever=FoundByLlamaIndex(asked.passages), response_synthesizer=get_response_synthesizer(llm=model)
    )
    return str(engine.query(asked.question))
