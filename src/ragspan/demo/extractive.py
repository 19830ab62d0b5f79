"""The demo's model: it picks sentences from the prompt's passages, and needs no network and no key.

It is told in which manner to answer, because a demo of scores needs bad answers as well as good ones.
"""

from __future__ import annotations

import re

from ragspan.demo.corpus import telling_words
from ragspan.demo.script import Manner

PROMPT = "Answer the question from the passages.\n\nPassages:\n{context}\n\nQuestion: {question}"

_MIN_WORDS = 6  # shorter sentences are scraps of lists
_REFUSAL = "I cannot answer that: the passages do not mention it."
_INVENTION = (
    "Every score is checked by 12 reviewers in Zurich, who vote twice a day and keep their notes for 90 days. "
    "Customers on the Platinum plan may appeal to Professor Lindqvist."
)


def split_prompt(prompt: str) -> tuple[str, str]:
    """The passages and the question of a prompt in the form of `PROMPT`."""
    _, _, rest = prompt.partition("Passages:\n")
    passages, _, question = rest.rpartition("\n\nQuestion: ")
    return passages, question


def answer(question: str, passages: str, manner: Manner) -> str:
    """An answer in this manner."""
    if manner is Manner.UNGROUNDED:
        return _INVENTION
    if manner is Manner.REFUSED:
        return _REFUSAL
    best = _best_sentences(question, passages)
    if not best:
        return _REFUSAL
    return _in_order(best[:3]) if manner is Manner.GOOD else _beginning(best[-1][1])


def _best_sentences(question: str, passages: str) -> list[tuple[int, str]]:
    """The sentences that share something with the question and their places, those that share most first."""
    wanted = telling_words(question)
    found: list[tuple[int, int, str]] = []
    for line in passages.splitlines():
        title, _, text = line.partition(": ")
        heading = telling_words(title)
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text):
            shared = len(wanted & (telling_words(sentence) | heading))
            if shared and len(sentence.split()) >= _MIN_WORDS:
                found.append((-shared, len(found), sentence))
    return [(place, sentence) for _, place, sentence in sorted(found)]


def _in_order(sentences: list[tuple[int, str]]) -> str:
    return " ".join(sentence for _, sentence in sorted(sentences))


def _beginning(sentence: str) -> str:
    return " ".join(sentence.rstrip(".").split()[:7]).rstrip(",;:") + "."
