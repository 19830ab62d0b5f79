"""What the screen says of answers of many kinds, to the fourth place: `figures.jsonl` has contexts, answers and the figures.

Of some of the answers it says too what a person says of them: they are right, not right, or wrong.

After a change that is meant: `python tests/judges/screen/test_figures.py`, and read the difference.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ragspan import RagRecord
from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge

EXPECTED = Path(__file__).with_name("figures.jsonl")
LABELS = {"right": {"pass", None}, "not right": {"fail", None}, "wrong": {"fail"}}
GROUPS = list(map(json.loads, EXPECTED.read_text("utf-8").splitlines()))


async def figures(contexts, question, response):
    """All that the judge answers; the type of the error where it cannot tell."""
    judge, record = OverlapJudge(), RagRecord(question=question, contexts=contexts, response=response)

    async def claims():
        verdicts = await judge.verify_claims(record, await judge.extract_claims(record))
        return [[one.verdict, round(one.probability, 4)] for one in verdicts]

    async def whole():
        (vote,) = await judge.vote_adherence(record, 1)
        return [vote.grounded, vote.unsure, round(vote.probability, 4), vote.explanation]

    async def completeness():
        (rating,) = await judge.rate_completeness(record, 1)
        return [round(rating.value, 4), rating.explanation]

    async def of_each(ratings):
        return [round(rating.value, 4) for rating in await ratings]

    asked = {
        "whole": whole(),
        "claims": claims(),
        "completeness": completeness(),
        "useful": of_each(judge.judge_usefulness(record)),
        "relevance": of_each(judge.rate_context_relevance(record)),
        "utilization": of_each(judge.measure_utilization(record)),
    }
    found = {}
    for name, answer in asked.items():
        try:
            found[name] = await answer
        except JudgeError as error:
            found[name] = error.error_type
    return found


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["contexts"][0][:40] if group["contexts"] else "none")
async def test_the_figures_are_those_that_were_read(group):
    for question, response, expected, *is_right in group["answers"]:
        found = await figures(group["contexts"], question, response)
        assert (response, found) == (response, expected)
        grounded, unsure, *_ = found["whole"] if isinstance(found["whole"], list) else (None, True)
        label = None if unsure else "pass" if grounded else "fail"
        assert all(label in LABELS[one] for one in is_right), response


def as_lines(groups):
    for group in groups:
        answers = [
            [question, response, asyncio.run(figures(group["contexts"], question, response)), *is_right]
            for question, response, _, *is_right in group["answers"]
        ]
        yield json.dumps({"contexts": group["contexts"], "answers": answers}, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    EXPECTED.write_text("".join(as_lines(GROUPS)), "utf-8")
