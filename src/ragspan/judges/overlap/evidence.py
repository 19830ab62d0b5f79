"""The passages of a record, read once: their sentences as keys, and where the words of an answer stand together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.structured import Flag, read_structure
from ragspan.judges.overlap.text import key, readable, tokens

MAX_CHARACTERS = 80_000
"""Characters of passages that are read for one record; long passages give way first."""
MAX_PASSAGES = 1000
"""Passages that are told apart; beyond that, neighbours count as one."""
MAX_SENTENCES = 4096
"""Sentences of passages that are told apart; beyond that, neighbours count as one."""

_GAP = 2
"""Numbers left free between two passages, so that no window of three sentences spans both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """One context as it is compared: the keys of its sentences, in order."""

    sentences: tuple[tuple[str, ...], ...]
    words: tuple[tuple[str, ...], ...]
    """The words of these sentences, as they are written."""
    structured: bool = False
    """True for JSON: its sentences are statements made of paths and values."""
    flags: tuple[Flag, ...] = ()

    def keys(self) -> Iterator[str]:
        return chain.from_iterable(self.sentences)


def read_passages(texts: Sequence[str]) -> tuple[Passage, ...]:
    """The passages, one for each text or, of more than `MAX_PASSAGES`, for several, as far as `MAX_CHARACTERS` allow."""
    at_a_time = -(-len(texts) // MAX_PASSAGES) or 1
    if at_a_time > 1:
        texts = ["\n".join(texts[at : at + at_a_time]) for at in range(0, len(texts), at_a_time)]
    shares = fair_shares([len(text) for text in texts], MAX_CHARACTERS)
    whole = sum(shares) or 1
    passages = [
        _read(text[:share], most=MAX_SENTENCES * share // whole) for text, share in zip(texts, shares, strict=True)
    ]
    joined = -(-sum(len(passage.sentences) for passage in passages) // MAX_SENTENCES)
    return tuple(passages) if joined <= 1 else tuple(_joined(passage, joined) for passage in passages)


def _read(text: str, *, most: int) -> Passage:
    """The passage; of plain text with more than `most` sentences the last ones count as one."""
    text = readable(text)
    structure = read_structure(text)
    if structure is None:
        sentences = split_sentences(text, most)
    else:
        sentences = chain.from_iterable(map(split_sentences, structure.statements))
    words = tuple(filter(None, map(tuple, map(tokens, sentences))))
    return Passage(
        sentences=tuple(tuple(map(key, sentence)) for sentence in words),
        words=words,
        structured=structure is not None,
        flags=structure.flags if structure else (),
    )


def _joined(passage: Passage, size: int) -> Passage:
    def groups(lines: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(chain.from_iterable(lines[at : at + size])) for at in range(0, len(lines), size))

    return replace(passage, sentences=groups(passage.sentences), words=groups(passage.words))


def fair_shares(lengths: Sequence[int], total: int) -> list[int]:
    """How much of each text may be read when all of it is more than `total`: short texts whole, long ones alike."""
    shares = [0] * len(lengths)
    left = total
    for done, index in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        shares[index] = min(lengths[index], left // (len(lengths) - done))
        left -= shares[index]
    return shares


class WindowIndex:
    """Finds the three consecutive sentences of one passage that hold most of a sentence's words.

    Windows are the bits of one large integer for each key; counts are added up bit plane by bit plane, so that a word
    costs a few operations on integers whatever the number of windows.
    """

    def __init__(self, passages: Sequence[Passage], wanted: frozenset[str]) -> None:
        self._windows: dict[str, int] = {}
        self._ends: list[int] = []
        number = 0
        for passage in passages:
            number += _GAP
            for sentence in passage.sentences:
                for word in wanted.intersection(sentence):
                    self._windows[word] = self._windows.get(word, 0) | (0b111 << (number - 2))
                number += 1
            self._ends.append(number)

    def __contains__(self, word: str) -> bool:
        return word in self._windows

    def best(self, keys: Iterable[str]) -> tuple[int, int | None]:
        """The most of these keys that one window holds, and the index of its passage; `(0, None)` when none does."""
        planes: list[int] = []  # the bits of one plane stand for 2**plane in the counts of their windows
        for word in keys:
            _count(planes, self._windows.get(word, 0))
        most, best = 0, -1
        for plane in reversed(range(len(planes))):
            if planes[plane] & best:
                best &= planes[plane]
                most += 1 << plane
        if not most:
            return 0, None
        window = (best & -best).bit_length() - 1
        return most, bisect_right(self._ends, window)


def _count(planes: list[int], windows: int) -> None:
    """Add one to the count of each of the windows."""
    carry = windows
    for plane, bits in enumerate(planes):
        if not carry:
            return
        planes[plane], carry = bits ^ carry, bits & carry
    if carry:
        planes.append(carry)
