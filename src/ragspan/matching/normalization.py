"""Undoes what formatters do to a text's spelling, so that texts and prompts can be compared.

The same is done to both sides, again and again until nothing changes. So a text matches whether the prompt holds it as it
is, as JSON, as JSON within JSON, as Python prints it, or escaped for XML and web pages; with other line ends, indents and
runs of white space; in composed or decomposed letters.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

_MAX_LAYERS = 4
_SLICE = 200_000
"""Characters that are worked on at once: other threads wait no longer than for one slice."""

_word = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_MAX_COUNTED = 50_000

_escape = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([\"'\\/bfnrt]))")
_LETTERS = {"b": " ", "f": " ", "n": " ", "r": " ", "t": " "}


def evened(text: str) -> str:
    """A text without escapes, in composed letters, with single spaces for all white space."""
    return " ".join(piece for piece in map(_evened_slice, _slices(text)) if piece)


def words_in(text: str) -> Iterator[re.Match[str]]:
    """The words of a text; in scripts that write no spaces between words every letter is one."""
    return _word.finditer(text)


def word_count(text: str) -> int:
    """How many words a text has, as far as it is worth counting."""
    return sum(1 for _ in islice(words_in(text), _MAX_COUNTED))


def _evened_slice(text: str) -> str:
    for _ in range(_MAX_LAYERS):
        before = text
        if "\\" in text:
            text = _joined_surrogates(_escape.sub(_unescaped, text))
        if "&" in text:
            text = html.unescape(text)
        if text == before:
            break
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def _unescaped(match: re.Match[str]) -> str:
    four, eight, two, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(four or eight or two, 16)
    return chr(code) if code <= 0x10FFFF else match.group()  # noqa: PLR2004  the last code point


def _joined_surrogates(text: str) -> str:
    """JSON writes letters beyond the first plane as two escapes."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _slices(text: str) -> Iterator[str]:
    """The text in pieces that end at white space where there is any near."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        if end < len(text):
            space = text.rfind(" ", start + 1, end)
            end = space if space > end - 1000 else end
        yield text[start:end]
        start = end
