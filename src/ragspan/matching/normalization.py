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
from collections.abc import Callable, Iterator
from html.entities import html5
from typing import TypeAlias

MAX_COST = 4_000_000
"""What `words_of` spends at most: enough for 350,000 English words, or 2.3 million characters."""
_WORD_COST = 5
LONG_SLICE = 50_000
BARE_SLICE = 10_000
SLICE = 4000
MAX_WORD = 48
"""Longer words count as several. This bounds runs of combining marks as well, which Unicode sorts in quadratic time."""
_OTHER_LETTERS_COST = 4
_DECOMPOSED_COST = 20
_ESCAPE_COST = 40
_MAX_LAYERS = 4
_MAX_KNOWN = 20_000
_LOOKED_AT = 200_000
_MAX_LINE = 2000

_coded = re.compile(r"\\{1,8}(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_entity = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));")
_white_space = re.compile(r"\\[nrtbf]")
_surrogates = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_NUMBER = r"(?:[Ll](?:ine )?|\#)?\d{1,6}(?:[.\-]\d{1,4}){0,4}"
_number = re.compile(r"[ \t]{0,80}(\d{1,6})(?:\s|$)")
_layout = re.compile(
    rf"""(?P<inline></?(?:a|b|i|u|em|strong|span|sub|sup|code|mark|font|small)\b[^<>]{{0,500}}>)
    | </?[a-zA-Z!][^<>]{{0,500}}>
    | (?P<hyphen>(?<=[^\W\d_])-[ \t]{{0,20}}\r?\n[ \t]{{0,80}}(?=[^\W\d_]))
    | (?<=\])\([^()\s]{{1,500}}\)
    | \[\d{{1,4}}(?:[.:\-]\d{{1,4}}){{0,3}}\]
    | ^[ \t>|]{{0,80}}(?:(?:{_NUMBER}(?:[ \t]{{0,20}}(?:[|│→]|[:.)>](?=\s|$))|\t|[ ]{{2,20}})|\({_NUMBER}\)(?=[ ]))[ \t]{{0,80}}){{1,3}}
    | (?P<counted>^[ \t]{{0,80}}\d{{1,6}}(?:[ ]|$))""",
    re.MULTILINE | re.VERBOSE,
)
_layout_begins_line = re.compile(r"[ \t>|]{0,80}\(?(?:[Ll](?:ine ?)?|#)?\d")
_WHITE_SPACE = {"\\n": "\n", "\\r": "\n", "\\t": " ", "\\b": " ", "\\f": " "}


Counts: TypeAlias = list[list[int]]
"""How many words each of the short slices has, by long slice."""


def words_of(
    text: str, most: int = MAX_COST, *, counts: Counts | None = None, bare: bool = False
) -> tuple[list[str], int]:
    """The words of a text, without case and punctuation, and what is left of `most`: below 0 where the text was cut off.

    In scripts that write no spaces between words every letter is one.

    Args:
        text: any text.
        most: what this may cost.
        counts: is filled, for `WordPositions`.
        bare: leave out what belongs to a layout: tags, the numbers of lines, hyphens at their ends, targets of links.
    """
    words: list[str] = []
    for escaped in slices(text, BARE_SLICE if bare else LONG_SLICE):
        if "\\" in escaped or "&" in escaped:
            escapes = escaped.count("&") + escaped.count("\\") - escaped.count("\\n") - escaped.count('\\"')
            most -= _ESCAPE_COST * escapes
        piece = unescaped(escaped, bare=bare) if most >= 0 else ""
        own: list[int] = []
        if counts is not None:
            counts.append(own)
        for short in slices(piece, SLICE):
            most -= len(short)
            if most < 0:
                return words, most
            new, cost = _words_of_slice(short)
            words += new
            own.append(len(new))
            most -= cost + _WORD_COST * len(new)
    return words, most


Substitution: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def substitutions(text: str, *, bare: bool = False) -> Iterator[Substitution]:
    """What takes the escapes of JSON, Python, XML and web pages off a text, step by step. Backslashes may stay: they are not words."""
    if "\\" in text:
        yield _white_space, lambda match: _WHITE_SPACE[match[0]]
        yield _coded, _decoded
        yield _surrogates, lambda match: match[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "&" in text:
        yield from [(_entity, _decoded_entity)] * _MAX_LAYERS
    if bare:
        yield _layout, _without_layout


def _without_layout(match: re.Match[str]) -> str:
    if match["counted"] and not _counts_lines(match):
        return match[0]
    return "" if match["inline"] or match["hyphen"] else " "


def _counts_lines(match: re.Match[str]) -> bool:
    """Whether the line before begins with the number below this one, or the line after with the one above."""
    text, number = match.string, int(match[0])
    before = text.rfind("\n", max(0, match.start() - _MAX_LINE), max(0, match.start() - 1)) + 1
    after = text.find("\n", match.end(), match.end() + _MAX_LINE) + 1
    return any(
        (near := _number.match(text, start)) is not None and int(near[1]) == number + step
        for start, step in ((before, -1), (after, 1))
        if start or step < 0
    )


def unescaped(text: str, *, bare: bool = False) -> str:
    """A text without escapes; if `bare`, without what belongs to its layout."""
    for pattern, replace in substitutions(text, bare=bare):
        text = pattern.sub(replace, text)
    return text


def is_laid_out(text: str) -> bool:
    """Whether a text has something that `bare` leaves out."""
    plain = unescaped(text[:_LOOKED_AT])
    return _may_be_laid_out(plain) and any(_layout.search(piece) is not None for piece in slices(plain, BARE_SLICE))


def _may_be_laid_out(text: str) -> bool:
    """Most prose has nothing that `_layout` can begin or end with; to look for that takes a tenth of the time."""
    return (
        "<" in text
        or "]" in text
        or any(_layout_begins_line.match(line) or line.rstrip().endswith("-") for line in text.split("\n"))
    )


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
    if not words or max(map(len, words)) <= MAX_WORD:
        return words
    return [word[at : at + MAX_WORD] for word in words for at in range(0, len(word), MAX_WORD)]


def letters_of(cluster: str) -> str:
    """What becomes of a character and the marks on it, with spaces where words end."""
    return unicodedata.normalize("NFC", cluster.casefold().translate(_characters)).translate(_characters)


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
