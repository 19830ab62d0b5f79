"""The project's own documentation as passages, and a search over them without a model or a network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """The passages of ragspan's documentation.

    Raises:
        FileNotFoundError: this installation holds no documentation.
    """
    packaged = Path(__file__).parent / "documentation"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[3] / "docs"
    files = sorted(folder.glob("*.md"))
    if not files:
        raise FileNotFoundError("this installation of ragspan holds no documentation to search")
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
    return [word.rstrip("s") if len(word) > 3 else word for word in _word.findall(text.lower())]  # noqa: PLR2004  plurals


def telling_words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {word for word in words_of(text) if word not in _COMMON}
