"""Judged answers as a program gives them: each is answered by a LangChain chain with a system prompt, and captured there."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from agreeing.judgements import Judgement, JudgementSet
from ragspan import RagRecord
from ragspan.records import Capture
from ragspan_langchain import RagspanCallbackHandler

WORDS = (60, 500)
"""Of a system prompt."""
_RULES = (
    "You are the assistant of a help desk and answer in two to five sentences.",
    "Use the passages below and nothing else, and do not mention them in the answer.",
    "If the passages do not hold the answer, say that you do not know it.",
    "Write in the language of the question, in a calm and friendly tone, and address the reader as you.",
    "Never promise a refund, a date of delivery or a discount, and never give legal or medical advice.",
    "Our office in Graz is open from Monday to Friday, and orders above fifty euros are sent without a charge.",
    "Example: asked how long the warranty of a kettle is, the answer is that it lasts for three years.",
    "Example: asked who founded the company, the answer is that Maria Huber founded it in 1987.",
    "Keep names, numbers, units and dates as they stand in the passages, and round nothing.",
    "Where two passages disagree, say so in one sentence and name both.",
    "Do not repeat the question, do not greet, and do not end with an offer to help further.",
    "Write lists only where the reader asked for steps, and then with no more than seven of them.",
)

Prompt: TypeAlias = Callable[[str], Runnable[Any, Any]]


def by_template(rules: str) -> Runnable[Any, Any]:
    """A template has the rules, and is filled with the passages."""
    return ChatPromptTemplate.from_messages([("system", rules + "\n\n{context}"), ("human", "{question}")])


def by_hand(rules: str) -> Runnable[Any, Any]:
    """The program writes rules and passages into one message: nobody can tell them from memories."""
    return RunnableLambda(
        lambda given: [SystemMessage(f"{rules}\n\n{given['context']}"), HumanMessage(given["question"])]
    )


PROMPTS: dict[str, Prompt] = {"template": by_template, "hand": by_hand}


class _Passages(BaseRetriever):
    texts: Sequence[str]

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        return [Document(text) for text in self.texts]


@dataclass(slots=True)
class _Kept:
    captures: list[Capture] = field(default_factory=list)

    def submit(self, capture: Capture) -> None:
        self.captures.append(capture)


def captured(judged: JudgementSet, prompt: str, seed: int) -> JudgementSet:
    """The same judgements with the records of such programs; `prompt` is one of `PROMPTS`."""
    draw = random.Random(f"{seed} {judged.name}")
    return replace(judged, judgements=tuple(_answered(one, PROMPTS[prompt], _rules(draw)) for one in judged.judgements))


def _rules(draw: random.Random) -> str:
    wanted, sentences = draw.randint(*WORDS), draw.sample(_RULES, len(_RULES))
    words = itertools.chain.from_iterable(sentence.split() for sentence in itertools.cycle(sentences))
    return " ".join(itertools.islice(words, wanted))


def _answered(judgement: Judgement, prompt: Prompt, rules: str) -> Judgement:
    told = judgement.record
    passages = _Passages(texts=[context.text for context in told.contexts or ()])
    model = GenericFakeChatModel(messages=iter([AIMessage(told.response or "")]))
    found = passages | (lambda documents: "\n\n".join(document.page_content for document in documents))
    sink = _Kept()
    chain = {"context": found, "question": RunnablePassthrough()} | prompt(rules) | model
    chain.invoke(told.question or "", {"callbacks": [RagspanCallbackHandler(sink=sink)]})
    record: RagRecord | None = sink.captures[-1].to_record()
    return judgement if record is None else replace(judgement, record=record)
