from __future__ import annotations

import pytest

from ragspan.judges.overlap import OverlapJudge
from ragspan.judges.overlap.context_reader import ContextReader
from ragspan.judges.overlap.grounding import grade_claims
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.records import RagRecord
from ragspan.text.keys import keys
from ragspan.text.sentences import read_sentence

TOWER = "The Eiffel Tower was built by the company of Gustave Eiffel. It opened in March 1889. It is 330 metres tall."
MUSEUM = "The Louvre in Paris is the most visited museum in the world. It opened in 1793."


@pytest.fixture
def judge():
    return OverlapJudge()


@pytest.fixture
def record_of():
    """A record about the Eiffel Tower with the response that a test gives."""

    def make(response, contexts=(TOWER, MUSEUM), question="When did the Eiffel Tower open?"):
        return RagRecord(question=question, contexts=contexts, response=response)

    return make


@pytest.fixture
def grade():
    """Grades one sentence against contexts."""

    def one(sentence, *texts, question=""):
        claims, contexts = [read_sentence(sentence)], ContextReader().read(texts)
        return grade_claims(claims, contexts, SharedWords(claims, contexts), frozenset(keys(question)))[0]

    return one


@pytest.fixture
def adherence(judge, record_of):
    """The probability that a response is grounded."""

    async def of(response, **fields):
        (vote,) = await judge.vote_adherence(record_of(response, **fields), 1)
        return vote.probability

    return of
