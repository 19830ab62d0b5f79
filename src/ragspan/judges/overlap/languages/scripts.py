"""Scripts: which one a text is written in, and which ones have no spaces between words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_LETTERS: Final = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "armenian": "\u0531-\u0587",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "devanagari": "\u0900-\u0963\u0970-\u097f",
    "bengali": "\u0980-\u09e3",
    "gurmukhi": "\u0a00-\u0a65",
    "gujarati": "\u0a80-\u0ae5",
    "oriya": "\u0b00-\u0b65",
    "tamil": "\u0b80-\u0be5",
    "telugu": "\u0c00-\u0c65",
    "kannada": "\u0c80-\u0ce5",
    "malayalam": "\u0d00-\u0d65",
    "sinhala": "\u0d80-\u0de5",
    "thai": "\u0e00-\u0e4f",
    "lao": "\u0e80-\u0ecf\u0edc-\u0eff",
    "burmese": "\u1000-\u103f\u1050-\u108f",
    "georgian": "\u10a0-\u10ff",
    "ethiopic": "\u1200-\u135f",
    "khmer": "\u1780-\u17d3\u17d7\u17dc-\u17dd",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "kana": "\u3040-\u30ff\uff66-\uff9f",
    "han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}

HAN_KANA: Final = _LETTERS["han"] + _LETTERS["kana"]
SOUTH_EAST_ASIAN: Final = "".join(_LETTERS[script] for script in ("thai", "lao", "burmese", "khmer"))
WITHOUT_SPACES: Final = HAN_KANA + SOUTH_EAST_ASIAN
"""Letters of scripts that put no spaces between words, as a part of a character class; and so are the two above."""
WITHOUT_SPACES_NAMES: Final = frozenset({"han", "kana", "thai", "lao", "burmese", "khmer"})


def _ranges_of_marks() -> str:
    points = {at for at in (*range(0x300, 0x1E00), *range(0xA800, 0xAC00)) if unicodedata.category(chr(at))[0] == "M"}
    starts = sorted(at for at in points if at - 1 not in points)
    ends = sorted(at for at in points if at + 1 not in points)
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))


MARKS: Final = _ranges_of_marks() + "\u00ad\u200b-\u200d\u2060"
"""What stands inside words beside letters, as a part of a character class: combining marks, soft hyphens, joiners."""

_RUN = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _LETTERS.items()))
_NOT_LATIN = re.compile("[\u0370-\u1dff\u1f00-\u1fff\u3005-\ud7af\uf900-\ufeff\uff66-\uff9f]")
_SIGNS_OF_A_WORD = 3
"""A sign of Han, kana or Thai says as much as so many letters."""


def characters_read(texts: Sequence[str], most: int) -> list[int]:
    """How many characters of each text are read where `most` may be: short texts whole, long ones alike.

    A sign of Han, kana, Thai or Hangul counts as five letters, and one of Devanagari as two: most are compared in two pairs.
    """
    lengths = [len(text) for text in texts]
    if _WEIGHT * sum(lengths) <= most:
        return lengths
    shares = fair_shares(lengths, most)
    whole = weight = sum(shares)
    for text, share in zip(texts, shares, strict=True):
        if not text.isascii():
            weight += (_WEIGHT - 1) * sum(map(len, _SIGNS.findall(text, 0, share)))
            weight += sum(map(len, _LETTERS_IN_PAIRS.findall(text, 0, share)))
    return fair_shares(lengths, most * whole // weight) if weight > most else shares


def fair_shares(lengths: Sequence[int], total: int) -> list[int]:
    """How much of each text may be read when all of it is more than `total`: short texts whole, long ones alike."""
    shares = [0] * len(lengths)
    left = total
    for done, index in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        shares[index] = min(lengths[index], left // (len(lengths) - done))
        left -= shares[index]
    return shares


_WEIGHT = 5
_SIGNS = re.compile(f"[{WITHOUT_SPACES}{_LETTERS['hangul']}]+")
_LETTERS_IN_PAIRS = re.compile(f"[{_LETTERS['devanagari']}]+")


def letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script a text has, signs that say more than a letter weighted.

    The text is a sample. In a text without other letters than Latin ones they are not counted, but 1.
    """
    if text.isascii() or not _NOT_LATIN.search(text):
        return {"latin": 1} if any(map(str.isalpha, text)) else {}
    counts: dict[str, int] = {}
    for match in _RUN.finditer(text):
        script = match.lastgroup or ""
        weight = _SIGNS_OF_A_WORD if script in WITHOUT_SPACES_NAMES else 1
        counts[script] = counts.get(script, 0) + weight * len(match[0])
    return counts


def main_script(counts: dict[str, int]) -> str | None:
    """The script of most of the letters; None without any. A tenth of kana makes Han Japanese."""
    if not counts:
        return None
    main = max(counts, key=counts.__getitem__)
    if main == "han" and counts.get("kana", 0) * 10 > counts["han"]:
        return "kana"
    return main
