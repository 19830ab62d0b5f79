"""Reduces texts to their words, so that texts and prompts can be compared whatever a formatter did to them.

The same is done to both sides. So a text matches whether the prompt holds it as it is, as JSON, as JSON within JSON, as
Python prints it, or escaped for XML and web pages; with other line ends, indents, quotation marks and runs of white space;
in composed or decomposed letters.

Every step works on a short slice: a call into C keeps all other threads waiting, and for some texts it takes more than
linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from html.entities import html5

MAX_COST = 4_000_000
"""What `words_of` spends at most: enough for 350,000 English words, or 2.3 million characters."""
_WORD_COST = 5
_LONG_SLICE = 50_000
_SLICE = 4000
_MAX_WORD = 48
"""Longer words count as several. This bounds runs of combining marks as well, which Unicode sorts in quadratic time."""
_OTHER_LETTERS_COST = 4
_DECOMPOSED_COST = 20
_ESCAPE_COST = 40
_MAX_LAYERS = 4
_MAX_KNOWN = 20_000

_coded = re.compile(r"\\{1,8}(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_entity = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));")
_WHITE_SPACE = {"\\n": "\n", "\\r": "\n", "\\t": " ", "\\b": " ", "\\f": " "}


def words_of(text: str, most: int = MAX_COST) -> tuple[list[str], int]:
    """The words of a text, without case and punctuation, and what is left of `most`: below 0 where the text was cut off.

    In scripts that write no spaces between words every letter is one.
    """
    words: list[str] = []
    for escaped in slices(text, _LONG_SLICE):
        piece = escaped
        if "\\" in escaped or "&" in escaped:
            escapes = escaped.count("&") + escaped.count("\\") - escaped.count("\\n") - escaped.count('\\"')
            most -= _ESCAPE_COST * escapes
            piece = unescaped(escaped) if most >= 0 else ""
        for short in slices(piece, _SLICE):
            most -= len(short)
            if most < 0:
                return words, most
            new, cost = _words_of_slice(short)
            words += new
            most -= cost + _WORD_COST * len(new)
    return words, most


def unescaped(text: str) -> str:
    """A text without the escapes of JSON, Python, XML and web pages. Backslashes may stay: they are no words."""
    if "\\" in text:
        for escape, white_space in _WHITE_SPACE.items():
            text = text.replace(escape, white_space)
        text = _joined_surrogates(_coded.sub(_decoded, text))
    for _ in range(_MAX_LAYERS if "&" in text else 0):
        before, text = text, _entity.sub(_decoded_entity, text)
        if text == before:
            break
    return text


def slices(text: str, size: int) -> Iterator[str]:
    """The text in pieces that end at white space where there is any near."""
    start = 0
    while len(text) - start > size:
        end = start + size
        near = max(start, end - 1000) + 1
        space = max(text.rfind(" ", near, end), text.rfind("\n", near, end))
        yield text[start : space if space > 0 else end]
        start = space if space > 0 else end
    yield text[start:]


def _words_of_slice(text: str) -> tuple[list[str], int]:
    """The words, and what they cost in addition to one for each character."""
    words = _cut(text.casefold().translate(_characters).split())
    if text.isascii():
        return words, 0
    joined = " ".join(words)
    if unicodedata.is_normalized("NFC", joined):
        return words, len(text) * _OTHER_LETTERS_COST
    normalized = unicodedata.normalize("NFC", joined)
    return _cut(normalized.translate(_characters).split()), len(text) * _DECOMPOSED_COST


def _cut(words: list[str]) -> list[str]:
    if not words or max(map(len, words)) <= _MAX_WORD:
        return words
    return [word[at : at + _MAX_WORD] for word in words for at in range(0, len(word), _MAX_WORD)]


class _Characters(dict[int, str | None]):
    """What becomes of each character: letters stay, punctuation becomes a space, invisible characters go."""

    def __missing__(self, code: int) -> str | None:
        new = _simplified(code)
        if len(self) < _MAX_KNOWN:
            self[code] = new
        return new


def _simplified(code: int) -> str | None:
    character = chr(code)
    category = unicodedata.category(character)
    if category == "Cf" or _is_variation_selector(code):
        return None
    if category == "So" or _is_word_by_itself(code):
        return f" {character}"
    return character if category[0] in "LNM" else "\n" if character == "\n" else " "


def _is_variation_selector(code: int) -> bool:
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF  # noqa: PLR2004  code points


def _is_word_by_itself(code: int) -> bool:
    """Whether this is a letter of Thai, Chinese, Japanese or Korean."""
    blocks = ((0x0E00, 0x0E7F), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0xAC00, 0xD7AF))
    return any(first <= code <= last for first, last in blocks) and unicodedata.category(chr(code))[0] in "LN"


_characters = _Characters()


def _decoded(match: re.Match[str]) -> str:
    return _character(int(match[match.lastindex or 0], 16)) or match[0]


def _decoded_entity(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        return html5.get(f"{name};", match[0])
    return _character(int(decimal) if decimal else int(hexadecimal, 16)) or match[0]


def _character(code: int) -> str | None:
    return chr(code) if code <= 0x10FFFF else None  # noqa: PLR2004  the last code point


def _joined_surrogates(text: str) -> str:
    """JSON writes letters beyond the first plane as two escapes."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
