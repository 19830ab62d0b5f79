"""Runs of scripts that put no spaces between words, cut into what can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from ragspan.judges.overlap.languages.numbers import HAN_NUMERALS
from ragspan.judges.overlap.languages.scripts import MARKS

_COUNTED = "年月日天号號个個人名件种種岁歳次回倍週周小时時分秒度元円块階层層位枚本台匹点點章条條项項家所国國季世届"
_NUMBER = rf"[{HAN_NUMERALS}]{{2,16}}|(?<=第)[{HAN_NUMERALS}]|[{HAN_NUMERALS}](?=[{_COUNTED}])"
_CLUSTER = re.compile(rf"[^{MARKS}][{MARKS}]*")


def segments(run: str, whole: frozenset[str], kept: frozenset[str]) -> Iterator[str]:
    """Numbers, the words of `whole`, katakana words and single hiragana; of all else pairs of neighbouring signs.

    Words of `kept`, which hold one of `whole` without being it ("不同" is no denial), are words as well.
    """
    for match in _pattern(whole, kept).finditer(run):
        part = match[0]
        if match.lastgroup == "whole" or len(part) == 1:
            yield part
        else:
            signs = _CLUSTER.findall(part) or [part]
            yield from map("".join, pairwise(signs)) if len(signs) > 1 else signs


@cache
def _pattern(whole: frozenset[str], kept: frozenset[str]) -> re.Pattern[str]:
    def any_of(words: frozenset[str]) -> str:
        return "|".join(sorted(words, key=lambda word: (-len(word), word))) or "(?!)"

    one = f"{_NUMBER}|{any_of(whole)}"
    return re.compile(
        rf"""
          (?P<whole>{any_of(kept)}|{one}|[\u30a1-\u30ff]{{2,64}}|[\u3040-\u309f])
        | (?:(?!{any_of(kept)}|{one})[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff])+
        | (?:(?!{any_of(kept)}|{one})[^\u3040-\u30ff\u3005-\u3007\u3400-\u9fff\uf900-\ufaff])+
        | .
        """,
        re.VERBOSE,
    )
