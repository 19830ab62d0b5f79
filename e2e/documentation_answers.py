"""Answers about ragspan's own documentation, good and bad, by a model that picks sentences from what a search finds."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from ragspan import RagRecord, RetrievedContext

_word = re.compile(r"[a-z0-9_]+")
_heading = re.compile(r"^#+\s+", re.MULTILINE)
_MAX_WORDS = 130
_MIN_CHARACTERS = 40
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "does",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "what",
        "when",
        "which",
        "who",
        "why",
        "with",
        "will",
        "should",
        "can",
        "many",
        "each",
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A piece of documentation."""

    id: str
    source: str
    """The file that it comes from."""
    text: str


def documentation() -> list[Passage]:
    """The passages of ragspan's documentation."""
    files = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
    return [passage for file in files for passage in _passages(file)]


def _passages(file: Path) -> list[Passage]:
    sections = _heading.split(file.read_text(encoding="utf-8"))
    texts = [piece for section in sections for piece in _pieces(section)]
    return [
        Passage(id=f"{file.stem}-{number}", source=file.name, text=text) for number, text in enumerate(texts, start=1)
    ]


def _pieces(section: str) -> list[str]:
    """A section's paragraphs, joined up to a readable length; tables and code are left out."""
    pieces: list[str] = []
    title, _, body = section.partition("\n")
    for paragraph in re.split(r"\n\s*\n", body):
        text = " ".join(paragraph.split())
        if len(text) < _MIN_CHARACTERS or text.startswith(("|", "```", "<!--", "[")):
            continue
        text = text.replace("`", "").replace("*", "")
        if pieces and len(pieces[-1].split()) + len(text.split()) <= _MAX_WORDS:
            pieces[-1] += " " + text
        else:
            pieces.append(f"{title.strip()}: {text}")
    return pieces


class Search:
    """Ranks passages by the words that they share with a question (BM25)."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = list(passages)
        self._counts = [Counter(words_of(passage.text)) for passage in passages]
        self._mean_length = sum(map(Counter.total, self._counts)) / max(1, len(self._counts))
        holders = Counter(word for counts in self._counts for word in counts)
        self._weight = {
            word: math.log(1 + (len(self._counts) - held + 0.5) / (held + 0.5)) for word, held in holders.items()
        }

    def find(self, question: str, count: int = 4) -> list[tuple[Passage, float]]:
        """The best passages, best first, each with its score."""
        wanted = [word for word in dict.fromkeys(words_of(question)) if word not in _COMMON]
        ranked = [(passage, self._score(wanted, place)) for place, passage in enumerate(self._passages)]
        ranked.sort(key=lambda pair: -pair[1])
        return [(passage, score) for passage, score in ranked[:count] if score > 0]

    def _score(self, wanted: Sequence[str], place: int) -> float:
        counts = self._counts[place]
        damping = 1.2 * (0.25 + 0.75 * counts.total() / self._mean_length)
        return sum(self._weight.get(word, 0.0) * counts[word] * 2.2 / (counts[word] + damping) for word in wanted)


def words_of(text: str) -> list[str]:
    return [word.rstrip("s") if len(word) > 3 else word for word in _word.findall(text.lower())]


def telling_words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {word for word in words_of(text) if word not in _COMMON}


class Manner(enum.Enum):
    """How the model answers."""

    GOOD = "good"
    INCOMPLETE = "incomplete"
    UNGROUNDED = "ungrounded"
    REFUSED = "refused"


_MIN_WORDS = 6  # shorter sentences are scraps of lists
_REFUSAL = "I cannot answer that: the passages do not mention it."
_INVENTION = (
    "Every score is checked by 12 reviewers in Zurich, who vote twice a day and keep their notes for 90 days. "
    "Customers on the Platinum plan may appeal to Professor Lindqvist."
)


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


MANNERS = (
    [Manner.GOOD],
    [Manner.GOOD],
    [Manner.INCOMPLETE],
    [Manner.GOOD],
    [Manner.GOOD, Manner.UNGROUNDED],
    [Manner.GOOD],
    [Manner.REFUSED],
    [Manner.GOOD],
    [Manner.UNGROUNDED],
)
"""Of one answer after another; one with two manners is half good and half not."""


def answered_questions() -> Iterator[RagRecord]:
    """A question about each part of the documentation, with what the search found and what the model made of it."""
    passages = documentation()
    search = Search(passages)
    parts = dict.fromkeys(passage.text.partition(": ")[0] for passage in passages)
    for number, (part, manners) in enumerate(zip(parts, cycle(MANNERS), strict=False), start=1):
        question = f"What is there to know about {part[:1].lower()}{part[1:]}?"
        found = [passage for passage, _ in search.find(question)]
        prompt = "\n".join(passage.text for passage in found)
        yield RagRecord(
            question=question,
            contexts=[
                RetrievedContext(text=passage.text, id=passage.id, source=passage.source, rank=rank)
                for rank, passage in enumerate(found)
            ],
            response=" ".join(answer(question, prompt, manner) for manner in manners),
            record_id=f"documentation-{number}",
        )
