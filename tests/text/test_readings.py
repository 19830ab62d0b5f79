"""How texts of many kinds are read: `readings.jsonl` has each text, and what every part of the reading makes of it.

After a change that is meant: `python tests/text/test_readings.py`, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan.text.answers import stated, states_nothing, without_thoughts
from ragspan.text.keys import keys, readable, tokens
from ragspan.text.languages import ENGLISH, guess, languages_of
from ragspan.text.refusals import refuses
from ragspan.text.responses import declines, is_refusal, read_claims
from ragspan.text.sentences import split_sentences

EXPECTED = Path(__file__).with_name("readings.jsonl")
READINGS = list(map(json.loads, EXPECTED.read_text("utf-8").splitlines()))
ONE_THING = (  # in nine languages, and as a mere name
    "The tower was built by a company and it opened in March.",
    "Der Turm wurde von einer Firma gebaut und im März eröffnet.",
    "La tour a été construite par une entreprise et a ouvert en mars.",
    "Башня была построена компанией и открыта в марте.",
    "تم بناء البرج من قبل شركة وافتتح في مارس.",
    "यह मीनार एक कंपनी ने बनाई थी।",
    "这座塔是由一家公司建造的。",
    "この塔は会社が建てました。",
    "이 탑은 회사가 지었습니다.",
    "Apple iPhone 15 Pro Max",
)


def reading(text):
    """What is not empty of all that is read of a text."""
    language = guess(text) or ENGLISH
    even = readable(text)
    found = {
        "language": guess(text) and language.code,
        "beside English": code
        if (code := languages_of(text, ["It opened in March."], "When?").contexts.code) != "en"
        else None,
        "tokens": tokens(text),
        "english keys": keys(text),
        "keys": None if language is ENGLISH else language.keys(even),
        "sentences": list(split_sentences(even, language)),
        "claims": [claim.text for claim in read_claims(text, language)],
        "stated": None if stated(text) == text else stated(text),
        "without thoughts": None if without_thoughts(text) == text else without_thoughts(text),
        "says nothing": states_nothing(text),
        "declines": declines(text),
        "is a refusal": is_refusal(text),
        "refuses": bool(refuses(text, language)),
    }
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize(("text", "expected"), READINGS, ids=lambda one: one[:30] if isinstance(one, str) else "")
def test_a_text_is_read_as_it_was(text, expected):
    assert reading(text) == expected


def test_which_languages_can_be_compared():
    """Each row is an answer, each column a context: Chinese and Japanese share signs, and a name is a name everywhere."""
    found = ["".join(str(int(languages_of(one, [other]).are_comparable)) for other in ONE_THING) for one in ONE_THING]

    assert found == [
        "1000000001",
        "0100000001",
        "0010000001",
        "0001000000",
        "0000100000",
        "0000010000",
        "0000001100",
        "0000001100",
        "0000000010",
        "1110000001",
    ]


if __name__ == "__main__":
    written = (json.dumps([text, reading(text)], ensure_ascii=False) + "\n" for text, *_ in READINGS)
    EXPECTED.write_text("".join(written), "utf-8")
