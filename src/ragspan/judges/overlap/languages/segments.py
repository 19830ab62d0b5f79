"""Runs of scripts that put no spaces between words, cut into what can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice
from operator import add

from ragspan.judges.overlap.languages.numbers import HAN_NUMERALS
from ragspan.judges.overlap.languages.scripts import HAN_KANA, MARKS

_COUNTED = "年月日天号號个個人名件种種岁歳次回倍週周小时時分秒度元円块階层層位枚本台匹点點章条條项項家所国國季世届"
_NUMBER = rf"[{HAN_NUMERALS}]{{2,16}}|(?<=第)[{HAN_NUMERALS}]|[{HAN_NUMERALS}](?=[{_COUNTED}])"
_CLUSTER = re.compile(rf"[^{MARKS}][{MARKS}]*")


def segments(run: str, whole: frozenset[str], kept: frozenset[str]) -> list[str]:
    """Numbers and the words of `whole` as they are; of all else pairs of neighbouring signs, of Han and kana each sign as well.

    A pair tells more than a sign, and a sign is found where a pair is not: "购买" and "买". Words of `kept` hold one of `whole`
    without being it ("不同" is no denial).
    """
    found: list[str] = []
    for match in _pattern(whole, kept).finditer(run):
        part = match[0]
        if match.lastgroup == "whole":
            found.append(part)
        else:
            found += pairs(part, with_signs=_HAN_OR_KANA.match(part) is not None)
    return found


def pairs(part: str, *, with_signs: bool = False) -> list[str]:
    """The pairs of neighbouring signs, which are letters with their marks; one sign as it is."""
    signs: list[str] = _CLUSTER.findall(part) or [part]
    if len(signs) == 1:
        return signs
    joined = map(add, signs, islice(signs, 1, None))
    if not with_signs:
        return list(joined)
    found = list(chain.from_iterable(zip(signs, joined, strict=False)))
    found.append(signs[-1])
    return [one for one in found if one not in _NUMERALS]  # which are numbers by themselves


def without_repetition(tokens: Iterable[str]) -> Iterator[str]:
    """Tokens that follow each other, pairs that overlap joined to what was written: "购买", "买", "买后" → "购买后"."""
    joined = ""
    for token in tokens:
        if joined and token in joined:
            continue
        if joined and token.startswith(joined):
            joined = token
        elif joined and token[0] > _LAST_ALPHABETIC and token[0] == joined[-1]:
            joined += token[1:]
        else:
            if joined:
                yield joined
            joined = token
    if joined:
        yield joined


_NUMERALS = frozenset(HAN_NUMERALS)
_LAST_ALPHABETIC = "\u0dff"
_HAN_OR_KANA = re.compile(f"[{HAN_KANA}]")


@cache
def _pattern(words: frozenset[str], kept: frozenset[str]) -> re.Pattern[str]:
    def any_of(some: frozenset[str]) -> str:
        return "|".join(sorted(some, key=lambda word: (-len(word), word))) or "(?!)"

    whole = f"{any_of(kept)}|{_NUMBER}|{any_of(words)}"
    return re.compile(f"(?P<whole>{whole})|(?:(?!{whole}).)+", re.DOTALL)
