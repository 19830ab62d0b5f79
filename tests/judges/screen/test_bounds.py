"""What any record may cost: all metrics together, in processor time, from one analysis."""

from __future__ import annotations

import asyncio
import json
import random
import unicodedata
from functools import partial

import pytest
from processor import seconds_of

from ragspan.judges import OverlapJudge
from ragspan.judges.screen.contexts import MAX_CHARACTERS, MAX_CONTEXTS
from ragspan.metrics import (
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
)
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.records import RagRecord
from ragspan.text import vocabulary

SECONDS = 0.25  # where nothing else runs
ALLOWED = 2 * SECONDS
OF_EACH_CONTEXT = (ContextUtilization, ContextRelevance, ChunkAttribution, ChunkUtilization)
_random = random.Random(1)
WORDS = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(3, 10))) for _ in range(3000)]


def prose(characters):
    sentences = []
    while sum(map(len, sentences)) < characters:
        sentences.append(" ".join(_random.choices(WORDS, k=12)).capitalize() + ". ")
    return "".join(sentences)


def letters(first, last):
    return [sign for sign in map(chr, range(first, last)) if unicodedata.category(sign)[0] in "LMN"]


LETTERS = letters(0x20, 0x30000)
KANA, HAN, HANGUL, DEVANAGARI = (
    letters(*ends) for ends in ((0x3041, 0x30FF), (0x4E00, 0x9FA0), (0xAC00, 0xD7A0), (0x904, 0x94D))
)


def signs(among, count=100_000):
    return "".join(_random.choices(among, k=count))


def outcomes_of(record):
    """What all metrics come to, as an engine asks them: of one judge, one after the other."""
    judge = OverlapJudge()

    async def ask():
        metrics = [metric(judge) for metric in (ContextAdherence, Completeness, Faithfulness, *OF_EACH_CONTEXT)]
        return {metric.name: await metric.score(record) for metric in metrics}

    return asyncio.run(ask())


def are_cheap(*records):
    """Whether one of these, which are to cost the same, costs little; or else one of several tries with the only one."""
    works = [partial(outcomes_of, record) for record in (records if len(records) > 1 else records * 5)]
    return seconds_of(*works, enough=ALLOWED) <= ALLOWED


ANSWER = prose(3000)
_PIECES = (
    "a¦A¦ ¦\n¦.¦!¦1¦-¦*¦#¦\"¦'¦(¦[¦{¦\\¦:¦,¦’¦é¦字¦\ud800¦1,111,¦1:¦5 p¦a.¦U.S. ¦ha-¦a'¦\u0315\u0300¦e\u0301¦\u200b¦x\n¦is not, ¦"
    '{"a":¦sorry ¦no such ¦I do not have ¦Here is ¦thanks, ¦the answer ¦not '
)


def markdown(rows, name="Row"):
    lines = [f"| {name} {at} | {at * 7 % 1000} | {at * 11 % 1000} |" for at in range(rows)]
    return "\n".join(["| name | price | stock |", "|---|---|---|", *lines])


HOSTILE = {
    **{
        ascii(piece): lambda piece=piece: ([piece * (100_000 // len(piece)), "tower"], "tower " + piece * 20_000)
        for piece in _PIECES.split("¦")
    },
    "10,000 contexts": lambda: ([prose(60)] * 10_000, ANSWER),
    "40,000 contexts": lambda: ([prose(60)] * 40_000, ANSWER),
    "40,000 contexts that share all": lambda: (["Beta settles payments."] * 40_000, "Beta settles payments. " * 400),
    "100,000 sentences": lambda: (["A b. " * 100_000], ANSWER),
    "100,000 sentences in the response": lambda: ([ANSWER], "Ab c. " * 100_000),
    "one token": lambda: (["a" * 10_000_000], "b" * 10_000_000),
    "one number": lambda: (["1" * 10_000_000], "2" * 10_000_000),
    "combining marks": lambda: (["a" + "\u0301\u0316" * 2_000_000], "a" + "\u0316\u0301" * 2_000_000),
    "words with combining marks": lambda: (["a\u0301 " * 500_000], "a\u0301 " * 500_000),
    "one word repeated": lambda: (["word " * 2_000_000], "word " * 2_000_000),
    "one verb repeated": lambda: (["thanks, " * 12_500], "thanks, " * 20_000),
    "names to be written out": lambda: (["and about " * 10_000], "The AAAAAB and the AAAAAC met. " * 1_000),
    "abbreviations": lambda: (["e.g. The " * 100_000], "e.g. The " * 100_000),
    "initials": lambda: (["A. " * 200_000], "A.B. " * 20_000),
    "ideographs": lambda: (["\u4e00\u4e8c" * 200_000], "\u4e00" * 200_000),
    "signs of all scripts": lambda: ([signs(LETTERS)], signs(LETTERS)),
    "words of all scripts": lambda: ([signs([*LETTERS, *" " * 20_000])], signs([*LETTERS, *" " * 20_000])),
    "one run of kana": lambda: ([signs(KANA)], signs(KANA)),
    "one run of Chinese": lambda: ([signs(HAN)], signs(HAN)),
    "sentences of Chinese": lambda: ([signs([*HAN, *"\u3002" * 1000])], signs([*HAN, *"\u3002" * 1000])),
    "Korean": lambda: ([signs([*HANGUL, *" " * 3000])], signs([*HANGUL, *" " * 3000])),
    "Hindi": lambda: ([signs([*DEVANAGARI, *" " * 20])], signs([*DEVANAGARI, *" " * 20])),
    "10,000 contexts of kana": lambda: ([signs(KANA, 60) for _ in range(10_000)], signs(KANA)),
    "10,000 contexts of all scripts": lambda: ([signs(LETTERS, 60) for _ in range(10_000)], signs(LETTERS)),
    "flags": lambda: ([json.dumps({f"{a}{b}": False for a in WORDS[:200] for b in WORDS[200:250]})], ANSWER),
    "clauses about flags": lambda: (
        [json.dumps({f"{a} {b}": False for a, b in zip(WORDS[:256], WORDS[256:512], strict=True)})],
        "".join(f"{a} {b} is," for a, b in zip(WORDS[:256], WORDS[256:512], strict=True)) * 20,
    ),
    "open brackets": lambda: (["[" * 1_000_000], ANSWER),
    "a long table": lambda: ([markdown(3000)], " ".join(f"Row {at} has price {at}." for at in range(600))),
    "1,000 tables": lambda: (["\n\nx\n\n".join([markdown(3)] * 1000)], "Row 1 has a price of 50. " * 600),
    "open tables": lambda: (["<table><tr><td>a<td>b" * 5_000], "<table><tr><td>a<td>b" * 1_400),
    "rules of tables": lambda: (["|---|---|\n" * 10_000], "|---|---|\n" * 3_000),
    "a list": lambda: (["[" + "1," * 200_000 + "1]"], "1 is 1. " * 400),
}


@pytest.mark.alone
@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_no_record_takes_much_of_the_processor(texts):
    contexts, response = texts()
    record = RagRecord(question="What about Beta?", contexts=contexts, response=response)

    assert are_cheap(record)
    assert not isinstance(outcomes_of(record)["context_adherence"], MetricFailure)


@pytest.mark.alone
@pytest.mark.parametrize("question", [prose(20_000), signs(HAN)], ids=["English", "Chinese"])
def test_nor_does_a_long_question(question):
    for contexts in ([question], [question[at : at + 80] for at in range(0, len(question), 80)]):
        record = RagRecord(question=question, contexts=contexts, response=ANSWER)

        assert are_cheap(record)


INVENTED = {
    "random": ("abcdefghijklmnopqrstuvwxyz", 10, [""]),
    "short": ("abcdefghijklmnopqrstuvwxyz", 4, [""]),
    "with endings": ("abcdefghijklmnopqrstuvwxyz", 8, ["ization", "fulness", "ingly"]),
    "Greek": (
        "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03bf\u03c1\u03c3\u03c4\u03c9",
        10,
        [""],
    ),
    "Arabic": (
        "\u0627\u0628\u062a\u062b\u062c\u062d\u062e\u062f\u0631\u0633\u0641\u0642\u0643\u0644\u0645\u0646\u0647\u064a",
        10,
        [""],
    ),
}


def invented(letters, longest, endings, characters):
    words = []
    while characters > 0:
        words.append("".join(_random.choices(letters, k=_random.randint(3, longest))) + _random.choice(endings))
        characters -= len(words[-1]) + 1
    return ". ".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12))


@pytest.mark.alone
@pytest.mark.parametrize("kind", INVENTED.values(), ids=INVENTED)
def test_nor_do_words_that_nobody_has_seen_where_there_is_no_c_stemmer(kind, monkeypatch):
    monkeypatch.setattr(vocabulary, "_is_same_snowball", lambda: False)
    vocabulary._algorithm.cache_clear()
    records = [
        RagRecord(
            question=invented(*kind, 20_000), contexts=[invented(*kind, 80_000)], response=invented(*kind, 30_000)
        )
        for _ in range(5)
    ]

    assert are_cheap(*records)  # without the bound on stems up to .95
    vocabulary._algorithm.cache_clear()


def test_of_more_words_than_have_stems_those_of_the_response_have_theirs():
    numbered = [f"Word{number}s are mentioned here." for number in range(2 * vocabulary.MOST_STEMS)]
    contexts = [" ".join(numbered), "The payment is settled after midnight."]
    record = RagRecord(question="When?", contexts=contexts, response="Payments are settled after midnight.")

    assert outcomes_of(record)["faithfulness"].value == 1.0


def test_what_is_asked_of_each_context_does_not_apply_to_more_than_are_told_apart():
    few = RagRecord(
        question="What is Beta?", contexts=["Beta settles payments."] * MAX_CONTEXTS, response="Beta settles."
    )
    many = RagRecord(question=few.question, contexts=[*few.contexts, few.contexts[0]], response=few.response)
    names = {metric.name for metric in OF_EACH_CONTEXT}

    assert all(isinstance(outcome, Score) for outcome in outcomes_of(few).values())
    outcomes = outcomes_of(many)
    assert {name for name, outcome in outcomes.items() if isinstance(outcome, NotApplicable)} == names
    assert {outcomes[name].reason for name in names} == {"too_many_contexts"}


def test_a_sentence_is_found_among_many_contexts():
    contexts = [*["Nothing is said here."] * 2000, "Beta settles card payments after midnight.", *["Nor here."] * 2000]
    record = RagRecord(question="When?", contexts=contexts, response="Beta settles card payments after midnight.")

    assert outcomes_of(record)["faithfulness"].value == 1.0


def test_the_score_says_how_much_was_read():
    record = RagRecord(question="q", contexts=["x y. " * MAX_CHARACTERS], response="x y.")
    whole = RagRecord(question="q", contexts=["x y. "], response="x y.")

    read = outcomes_of(record)["context_adherence"].details["read"]
    assert read == pytest.approx(1 / 5, abs=0.001)
    assert "read" not in outcomes_of(whole)["context_adherence"].details


def test_of_signs_that_say_more_than_a_letter_fewer_are_read():
    most = MAX_CHARACTERS // 5
    whole = RagRecord(question="q", contexts=["\u6771\u4eac" * (most // 2)], response="\u6771\u4eac")
    more = RagRecord(question="q", contexts=["\u6771\u4eac" * most], response="\u6771\u4eac")

    assert "read" not in outcomes_of(whole)["context_adherence"].details
    assert outcomes_of(more)["context_adherence"].details["read"] == pytest.approx(1 / 2, abs=0.001)
