"""Every score is what it was, to the last digit, however the judge comes to it.

`python tests/judges/overlap/test_golden_scores.py` writes the scores anew after a change of a formula. The first were
written by commit 21c1209, before its judge was made faster.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

from ragspan.exceptions import JudgeError
from ragspan.judges.overlap import OverlapJudge
from ragspan.records import RagRecord

SCORES = Path(__file__).with_name("golden_scores.json")
FACTS = """
    The Eiffel Tower was built by the company of Gustave Eiffel. It opened in March 1889, and it is 330 metres tall.
    Mr. Smith et al. met at 5 p.m. in Washington D.C. to talk about the U.S. economy. 1. Open the lid. 2. Add 1,500.0 ml!
    - Visitors pay 12.50 euros (20 per cent less for children).
    - "Is it open?" she asked. It wasn't open on the 21st of Sept. at 17:30.
    Überraschung: naïve café — don’t panic… Two thirds of 3,000 people live there, i.e. 2000.
    {"name": "Blue Door", "OutdoorSeating": false, "WiFi": "yes", "hours": {"Monday": "9:0-17:0"}}
    Здравствуй, мир. 東京は日本の首都です。 الطقس جميل اليوم.
"""
_PIECES = (
    "\ud800¦\x00¦\u202e¦\u200b¦\u0301¦\xad¦½¦١٢¦字¦İ¦ß¦\xa0¦\t¦     ¦_¦*¦1:5 pm¦5¦ pm¦1,000¦21st_¦per¦ cent¦U.S.¦n't¦"
    '\'s¦$¦%¦{"a": ¦[¦]¦}¦null¦"¦not¦ ¦ ¦ ¦\n¦. ¦!¦, ¦- ¦1. ¦(1.¦a)¦tower¦Tower¦Mr.¦The¦•¦。¦#'
)
PIECES = _PIECES.split("¦")


def records():
    draw = random.Random(7)

    def text(most):
        if draw.random() < 1 / 3:
            return "".join(draw.choices(PIECES, k=draw.randrange(4 * most)))
        facts = FACTS.split("\n")
        words = [word for fact in draw.sample(facts, k=min(most, len(facts))) for word in fact.split(" ")]
        start = draw.randrange(len(words))
        return " ".join(words[start : start + draw.randrange(12 * most)])

    for _ in range(150):
        contexts = [text(6) for _ in range(draw.randrange(5))]
        copied = draw.choice(contexts)[:80] if contexts and draw.random() < 1 / 2 else ""
        yield RagRecord(question=text(1), contexts=contexts, response=copied + text(4))


async def scores_of(judge, record):
    return [
        [vote.probability for vote in await answer(judge.vote_adherence(record, 1))],
        [rating.value for rating in await answer(judge.rate_completeness(record, 1))],
        [verdict.probability for verdict in await answer(verify_own_claims(judge, record))],
        [verdict.explanation for verdict in await answer(judge.judge_usefulness(record))],
        [rating.value for rating in await answer(judge.rate_context_relevance(record))],
        [rating.value for rating in await answer(judge.measure_utilization(record))],
    ]


async def verify_own_claims(judge, record):
    return await judge.verify_claims(record, await judge.extract_claims(record))


async def answer(question):
    """Nothing where the judge cannot compare, or cannot tell."""
    try:
        return await question
    except JudgeError as error:
        if error.error_type not in {"language", "cannot_tell"}:
            raise
        return []


async def all_scores():
    judge = OverlapJudge()
    return [await scores_of(judge, record) for record in records()]


async def test_every_score_is_what_it_was_to_the_last_digit():
    assert await all_scores() == json.loads(SCORES.read_text())


async def test_a_record_that_was_read_before_scores_the_same():
    judge = OverlapJudge()
    for record in records():
        first = await scores_of(judge, record)
        for _ in range(2):
            copy = RagRecord(question=record.question, contexts=record.contexts, response=record.response)
            assert await scores_of(judge, copy) == first == await scores_of(OverlapJudge(), copy)


if __name__ == "__main__":
    SCORES.write_text("[\n" + ",\n".join(map(json.dumps, asyncio.run(all_scores()))) + "\n]\n")
