"""How long texts may be that share a room, such as a prompt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ragspan.turns import with_turns


def fair_limit(lengths: Sequence[int], room: int) -> int:
    """The length to cut texts to, so that all together take at most `room`.

    Shorter texts stay whole; the result is `room` if all texts do.
    """
    left = room
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return room


SIZE_OF_TOKEN = 4  # of most tokens, in the sense of `size_of`


def size_of(text: str) -> int:
    """The length of a text as models count it, in characters of English: four make a token.

    A token holds fewer characters of other scripts. The weights are about those of OpenAI's tokenizers, rather too large for
    the newer ones.
    """
    sizes = b"" if text.isascii() else _sizes(text)
    return sum(size * sizes.count(size) for size in with_turns({*_WEIGHTS})) if sizes else len(text)


def beginning(text: str, room: int) -> str:
    """The longest beginning of a text whose size is at most `room`."""
    text = text[: max(room, 0)]
    return text if text.isascii() else text[: bisect_right(list(accumulate(_sizes(text))), room)]


def characters_read(texts: Sequence[str], most: int) -> list[int]:
    """How many characters of each text are read if `most` of Latin script may be read in all: short texts whole, long ones alike.

    Of other scripts fewer are read, as `size_of` weighs them: they are compared in more parts.
    """
    lengths = [len(text) for text in texts]
    if sum(lengths) <= most and all(map(str.isascii, texts)):
        return lengths
    limit = fair_limit(lengths, most)
    lengths = [min(length, limit) for length in lengths]
    size = sum(size_of(text[:length]) for text, length in zip(texts, lengths, strict=True))
    limit = limit if size <= most else fair_limit(lengths, most * sum(lengths) // size)
    return [min(length, limit) for length in lengths]


def _sizes(text: str) -> bytes:
    """The size of each character."""
    return text.encode("utf-8", "surrogatepass").translate(_WEIGHTS, _CONTINUATIONS)


_CONTINUATIONS = bytes(range(0x80, 0xC0))
_WEIGHTS = b"".join(
    (
        b"\x01" * 0xC0,  # ASCII
        b"\x02" * 14 + b"\x03" * 2 + b"\x02" * 5 + b"\x03" * 11,  # further Latin, Greek, Cyrillic, Hebrew and Arabic
        b"\x05",  # Hindi, Thai, Tamil
        b"\x08",  # Burmese, Georgian, Amharic, Khmer; in Vietnamese one character of eight
        b"\x05" * 14,  # Chinese, Japanese, Korean
        b"\x0a" * 16,  # emoji
    )
)
"""By the first byte of a character in UTF-8."""
